import { type Config, ConfigError, loadConfig } from './config/index.ts';
import { releaseMemory } from './lib/release-memory.ts';
import { trustAuthorities } from './process/authorities.ts';
import { banner, type Providers } from './process/banner.ts';
import { prepareDataDir } from './process/data-dir.ts';
import { exposure } from './process/exposure.ts';
import { giveSignsOfLife, hasOthers, isOneOfSeveral, reportReady, runProcesses } from './process/processes.ts';
import { applicationSecrets } from './process/secret.ts';
import { onStopSignal } from './process/stop-signals.ts';
import { keepWatchdogQuiet } from './process/watchdog.ts';
import { createSecrets } from './secrets.ts';
import { serveMetricsOfAll, startTelemetry } from './telemetry/index.ts';
import { createLog, type Log } from './telemetry/log.ts';

/** The maximum time from the signal to the exit. */
const SHUTDOWN_MS = 9500;
/** Processes that have not ended by then are killed. */
const SHUTDOWN_ALL_MS = 9750;

async function start(): Promise<void> {
  const config = loadConfig();
  trustAuthorities(config);
  if (config.processes > 1 && !isOneOfSeveral()) return startSeveral(config);
  const embedded = !config.databaseUrl || !config.redisUrl || !config.smtpUrl || !config.s3 || !config.appSecrets;
  if (embedded) prepareDataDir(config.dataDir);

  const log = await createLog(config);
  keepWatchdogQuiet(log);
  if (!isOneOfSeveral()) warn(config, log);
  const telemetry = await startTelemetry(config, log);
  // Not loaded by a process that only supervises others.
  const { createService } = await import('./service.ts');
  const service = await createService(config, { secrets: createSecrets(applicationSecrets(config)), log });
  // Not earlier: on a busy machine, loading may block for longer than a hung process is left.
  if (isOneOfSeveral()) giveSignsOfLife();

  // With several processes, and with files on disk, only what is ready takes requests.
  const listensLast = hasOthers() || config.uploads.areOnDisk;
  if (!listensLast) await service.listen();

  const stop = async ({ lingerMs }: { lingerMs: number }) => {
    log.info('stopping: requests in flight are completed');
    setTimeout(() => process.exit(1), SHUTDOWN_MS).unref();
    await service.stop({ lingerMs });
    await telemetry.stop();
    log.info('stopped');
    log.flush(() => process.exit(0));
  };
  // With several processes each may get a signal twice: as part of the process group, and forwarded.
  onStopSignal({ stop, stopAtOnce: () => isOneOfSeveral() || process.exit(1) });

  if (!(await service.work())) return;
  if (listensLast) await service.listen();
  releaseMemory();
  const { providers, embeddedProvider } = service;
  if (isOneOfSeveral()) reportReady({ providers, embeddedProvider });
  else announce(config, log, service);
}

async function startSeveral(config: Config): Promise<void> {
  const log = await createLog(config);
  keepWatchdogQuiet(log);
  warn(config, log);
  await serveMetricsOfAll(config);
  const processes = runProcesses<Providers>(config.processes, {
    log,
    onReady: (providers) => announce(config, log, providers),
  });
  onStopSignal({
    async stop({ signal }) {
      setTimeout(() => processes.stop('SIGKILL'), SHUTDOWN_ALL_MS).unref();
      processes.stop(signal);
    },
    stopAtOnce: () => processes.stop('SIGKILL'),
  });
  const code = await processes.ended;
  log.flush(() => process.exit(code));
}

function warn({ warnings }: Config, log: Log): void {
  for (const warning of warnings) log.warn(warning);
}

function announce(config: Config, log: Log, providers: Providers): void {
  const { host, port, processes } = config;
  if (!config.production) {
    // A full disk or a closed pipe must not end the process.
    process.stdout.on('error', () => undefined).write(banner(config, providers));
    return;
  }
  for (const { text, remedy } of exposure(config)) {
    if (remedy === undefined) log.info(text);
    else log.warn(`${text}. ${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`);
  }
  log.info({ host, port, ...(processes > 1 && { processes }) }, 'ready');
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
