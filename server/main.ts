import { setTimeout as delay } from 'node:timers/promises';
import { createAccounts } from './accounts/index.ts';
import { ConfigError, loadConfig } from './config/index.ts';
import { createApp } from './http/app.ts';
import { devIdentityProvider } from './http/dev/idp/index.ts';
import { securityHeaders } from './http/security.ts';
import { createHttpServer } from './http/server.ts';
import { createLog, type Log } from './log.ts';
import type { Database } from './parts/database/contract.ts';
import { describeFailure } from './parts/database/failure.ts';
import { openDatabase } from './parts/database/index.ts';
import { openIdentityProviders } from './parts/identity-provider/index.ts';
import { openKeyValueStore } from './parts/key-value/index.ts';
import { openMail } from './parts/mail/index.ts';
import type { ObjectStorage } from './parts/object-storage/contract.ts';
import { openObjectStorage } from './parts/object-storage/index.ts';
import { banner } from './start/banner.ts';
import { prepareDataDir } from './start/data-dir.ts';
import { applicationSecret } from './start/secret.ts';
import { onStopSignal } from './start/stop-signals.ts';
import { createUploads } from './uploads/index.ts';

/** From the signal to the exit: the time for all requests, for the workers, and in all. */
const DRAIN_MS = 7000;
const WORKERS_MS = 1500;
const SHUTDOWN_MS = 9500;
const LONGEST_WAIT_MS = 2000;
const STORAGE_RETRY_MS = 5000;
const REPORT_EVERY_MS = 60_000;

// The banner may find a full disk or a closed pipe.
process.stdout.on('error', () => undefined);

async function start(): Promise<void> {
  const config = loadConfig();
  const embedded = !config.databaseUrl || !config.redisUrl || !config.smtpUrl || !config.s3 || !config.appSecret;
  if (embedded) prepareDataDir(config.dataDir);

  const log = await createLog(config);
  for (const warning of config.warnings) log.warn(warning);
  const database = await openDatabase(config);
  const store = await openKeyValueStore(config, log);
  const mail = await openMail(config);
  const secret = applicationSecret(config);
  const objects = await openObjectStorage(config, secret);
  const uploads = createUploads(config, { database, objects, log });
  const { avatarChanged, userDeleted } = uploads;
  const embeddedProvider = devIdentityProvider(config, { store, secret, log });
  const identityProviders = openIdentityProviders(embeddedProvider?.clients ?? config.identityProviders);
  const accounts = createAccounts(config, {
    database,
    store,
    mail,
    avatarChanged,
    userDeleted,
    identityProviders,
    secret,
    log,
  });
  const stopping = new AbortController();
  const app = createApp(config, {
    accounts,
    uploads,
    database,
    store,
    objects,
    devIdentityProvider: embeddedProvider,
    log,
    stopping: stopping.signal,
  });
  const server = createHttpServer(app, securityHeaders(config));

  await prepareStorage(objects, log);

  await server.listen(config.port, config.host);

  const stop = async ({ lingerMs }: { lingerMs: number }) => {
    stopping.abort();
    log.info('stopping: requests in flight are completed');
    setTimeout(() => process.exit(1), SHUTDOWN_MS).unref();
    await server.drain({ lingerMs, withinMs: DRAIN_MS });
    // Work that a worker cannot finish goes to another process when its lease ends.
    await Promise.race([Promise.all([accounts.outbox.stop(), uploads.inspection.stop()]), delay(WORKERS_MS)]);
    mail.close();
    objects.close();
    await Promise.all([store.close(), database.close()]);
    log.info('stopped');
    log.flush(() => process.exit(0));
  };
  onStopSignal({ stop, stopAtOnce: () => process.exit(1) });

  // Already listening: health and probes are answered, other requests are refused until the database is ready.
  await migrateWhenReachable(database, log);
  if (stopping.signal.aborted) return;
  accounts.outbox.start();
  uploads.inspection.start();
  if (config.production) log.info({ host: config.host, port: config.port }, 'ready');
  else
    process.stdout.write(
      banner(config, { providers: accounts.identityProviders, embeddedProvider: embeddedProvider !== undefined }),
    );
}

/**
 * Waits for a database that cannot be used yet, as long as it takes. Logs a problem when it is new, then once a minute.
 */
async function migrateWhenReachable(database: Database, log: Log): Promise<void> {
  let reported: { problem: string; at: number } | undefined;
  for (let wait = 100; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      const applied = await database.migrate();
      if (reported) log.info('the database can be used');
      if (applied.length > 0) log.info({ applied }, 'the schema was brought up to date');
      return;
    } catch (error) {
      const known = describeFailure(error);
      const problem = known ?? 'the database is not ready, waiting for it';
      if (reported?.problem !== problem || Date.now() - reported.at >= REPORT_EVERY_MS) {
        log.warn(known ? {} : { err: error }, problem);
        reported = { problem, at: Date.now() };
      }
      await delay(wait);
    }
  }
}

/** A missing bucket stops the start. A storage that does not answer is retried, and uploads fail until it does. */
async function prepareStorage(objects: ObjectStorage, log: Log): Promise<void> {
  try {
    await objects.prepare();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    log.warn({ err: error }, 'the object storage does not answer, uploads wait for it');
    const again = () => prepareStorage(objects, log).catch((late) => log.error({ err: late }, 'uploads cannot work'));
    setTimeout(again, STORAGE_RETRY_MS).unref();
  }
}

/** One line for a failure that an operator can resolve; any other with its stack. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  const { code, path, port, syscall, stack } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE') return `Port ${port} is taken: set PORT to another one, or stop what listens there.`;
  if (syscall === 'listen' || syscall === 'getaddrinfo')
    return `HOST or PORT cannot be used: ${(error as Error).message}`;
  if (path) return `DATA_DIR cannot be used: ${(error as Error).message}`;
  return stack ?? String(error);
}

start().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(1);
});
