import { ConfigError, loadConfig } from './config/index.ts';
import { createLog } from './log.ts';
import { releaseMemory } from './memory.ts';
import { createService } from './service.ts';
import { banner } from './start/banner.ts';
import { prepareDataDir } from './start/data-dir.ts';
import { applicationSecret } from './start/secret.ts';
import { onStopSignal } from './start/stop-signals.ts';
import { startTelemetry } from './telemetry/index.ts';

/** From the signal to the exit, at most. */
const SHUTDOWN_MS = 9500;

async function start(): Promise<void> {
  const config = loadConfig();
  const embedded = !config.databaseUrl || !config.redisUrl || !config.smtpUrl || !config.s3 || !config.appSecret;
  if (embedded) prepareDataDir(config.dataDir);

  const log = await createLog(config);
  for (const warning of config.warnings) log.warn(warning);
  const telemetry = await startTelemetry(config, log);
  const service = await createService(config, { secret: applicationSecret(config), log });

  await service.listen();

  const stop = async ({ lingerMs }: { lingerMs: number }) => {
    log.info('stopping: requests in flight are completed');
    setTimeout(() => process.exit(1), SHUTDOWN_MS).unref();
    await service.stop({ lingerMs });
    await telemetry.stop();
    log.info('stopped');
    log.flush(() => process.exit(0));
  };
  onStopSignal({ stop, stopAtOnce: () => process.exit(1) });

  if (!(await service.work())) return;
  releaseMemory();
  if (config.production) log.info({ host: config.host, port: config.port }, 'ready');
  // A full disk or a closed pipe is no reason to end.
  else process.stdout.on('error', () => undefined).write(banner(config, service));
}

/** One line for a failure that an operator can resolve; any other with its stack. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  const { code, path, port, syscall, stack } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE')
    return `Port ${port} is taken: set PORT (or METRICS_PORT) to another one, or stop what listens there.`;
  if (syscall === 'listen' || syscall === 'getaddrinfo')
    return `HOST or PORT cannot be used: ${(error as Error).message}`;
  if (path) return `DATA_DIR cannot be used: ${(error as Error).message}`;
  return stack ?? String(error);
}

start().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(1);
});
