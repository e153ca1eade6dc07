import { setTimeout as delay } from 'node:timers/promises';
import { createAccounts } from './accounts/index.ts';
import { ConfigError, loadConfig } from './config/index.ts';
import { createApp } from './http/app.ts';
import { devIdentityProvider } from './http/dev/idp/index.ts';
import { securityHeaders } from './http/security.ts';
import { createHttpServer } from './http/server.ts';
import { createLog, type Log } from './log.ts';
import type { Database } from './parts/database/contract.ts';
import { openDatabase } from './parts/database/index.ts';
import { troubleWith } from './parts/database/trouble.ts';
import { openIdentityProviders } from './parts/identity-provider/index.ts';
import { openKeyValueStore } from './parts/key-value/index.ts';
import { openMail } from './parts/mail/index.ts';
import type { ObjectStorage } from './parts/object-storage/contract.ts';
import { openObjectStorage } from './parts/object-storage/index.ts';
import { banner } from './start/banner.ts';
import { prepareDataDir } from './start/data-dir.ts';
import { applicationSecret } from './start/secret.ts';
import { createUploads } from './uploads/index.ts';

/** SIGTERM to exit: the time for new requests, for all requests, for the workers, and for all of it. */
const LINGER_MS = 1000;
const DRAIN_MS = 7000;
const WORKERS_MS = 1500;
const SHUTDOWN_MS = 9500;
const REPEATED_SIGNAL_MS = 500;
const LONGEST_WAIT_MS = 2000;
const STORAGE_RETRY_MS = 5000;
const TROUBLE_EVERY_MS = 60_000;

async function start(): Promise<void> {
  const config = loadConfig();
  const embedded = !config.databaseUrl || !config.redisUrl || !config.smtpUrl || !config.s3 || !config.appSecret;
  if (embedded) prepareDataDir(config.dataDir);

  const log = await createLog(config);
  for (const warning of config.warnings) log.warn(warning);
  const database = await openDatabase(config);
  const store = openKeyValueStore(config, log);
  const mail = openMail(config);
  const secret = applicationSecret(config);
  const objects = openObjectStorage(config, secret);
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

  const stop = async (lingerMs: number) => {
    stopping.abort();
    log.info('stopping: what is in flight is finished');
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
  let stoppingSince: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    // A terminal and npm may both pass on one keystroke; a later signal means that the user does not want to wait.
    if (stoppingSince !== undefined && Date.now() - stoppingSince > REPEATED_SIGNAL_MS) process.exit(1);
    if (stoppingSince !== undefined) return;
    stoppingSince = Date.now();
    // No load balancer sends requests here while a user at a terminal waits.
    void stop(signal === 'SIGTERM' ? LINGER_MS : 0);
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);

  // Listens from the first moment on: health answers, everything else is refused until the database is ready.
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
  let told: { trouble: string; at: number } | undefined;
  for (let wait = 100; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      const applied = await database.migrate();
      if (told) log.info('the database can be used');
      if (applied.length > 0) log.info({ applied }, 'the schema was brought up to date');
      return;
    } catch (error) {
      const known = troubleWith(error);
      const trouble = known ?? 'the database is not ready, waiting for it';
      if (told?.trouble !== trouble || Date.now() - told.at >= TROUBLE_EVERY_MS) {
        log.warn(known ? {} : { err: error }, trouble);
        told = { trouble, at: Date.now() };
      }
      await delay(wait);
    }
  }
}

/** A bucket that is missing stops the start; a storage that does not answer is looked for again, uploads wait for it. */
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

/** One line for a failure that an operator can mend; any other failure with its stack. */
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
