import { setTimeout as delay } from 'node:timers/promises';
import { createRules, openParts } from './assemble.ts';
import { type Config, ConfigError } from './config/index.ts';
import { createApp } from './http/app.ts';
import { devIdentityProvider } from './http/dev/idp/index.ts';
import { securityHeaders } from './http/security.ts';
import { createHttpServer } from './http/server.ts';
import { createReportLimit } from './lib/outage.ts';
import type { Database } from './parts/database/contract.ts';
import { describeFailure } from './parts/database/failure.ts';
import { openIdentityProviders } from './parts/identity-provider/index.ts';
import type { ObjectStorage } from './parts/object-storage/contract.ts';
import type { Secrets } from './secrets.ts';
import type { Log } from './telemetry/log.ts';
import { gauges } from './telemetry/metrics.ts';
import { textsOf } from './texts/index.ts';

/** The time limits for all requests, and for the workers as well: less than `main.ts` allows. */
const DRAIN_MS = 7000;
const STOP_MS = 8500;
const MAX_WAIT_MS = 2000;
const STORAGE_RETRY_MS = 5000;

interface Service {
  /** Names of the identity providers; `embeddedProvider` is true if the embedded one is among them. */
  providers: string[];
  embeddedProvider: boolean;
  /**
   * Serves health and probes from now on; other requests are refused until the database is ready. Rejects if the port
   * is taken, and with ConfigError if the bucket is missing.
   */
  listen(): Promise<void>;
  /** Waits for the database, migrates it and starts the workers. Resolves to false if stopped before. */
  work(): Promise<boolean>;
  /** Completes the requests in flight, accepts new ones for `lingerMs`, then closes every part. */
  stop(options: { lingerMs: number }): Promise<void>;
}

/**
 * The whole service on the configured parts, without signals or exit. If this rejects, parts may stay open: the process
 * should end.
 */
export async function createService(
  config: Config,
  { secrets, log }: { secrets: Secrets; log: Log },
): Promise<Service> {
  const texts = textsOf(config);
  const parts = await openParts(config, { secrets, log });
  const { database, store, objects } = parts;
  const embeddedProvider = devIdentityProvider(config, { store, secrets, log });
  const identityProviders = openIdentityProviders(embeddedProvider?.clients ?? config.identityProviders);
  const rules = createRules(config, parts, { identityProviders, secrets, texts, log });
  const { accounts, events, oauth, uploads, webhooks } = rules;
  const workers = [
    ...accounts.workers,
    uploads.inspection,
    uploads.variants,
    ...(uploads.scans ? [uploads.scans] : []),
    events.worker,
    webhooks.worker,
    oauth.worker,
  ];
  gauges(async () => ({ account_database_up: await isUp(database) }));
  gauges(async () => ({ account_key_value_store_up: await isUp(store) }));
  const stopping = new AbortController();
  const app = createApp(config, {
    rules,
    database,
    store,
    objects,
    devIdentityProvider: embeddedProvider,
    texts,
    log,
    stopping: stopping.signal,
  });
  const server = createHttpServer(app, securityHeaders(config), log);

  return {
    providers: accounts.providers.names,
    embeddedProvider: embeddedProvider !== undefined,

    async listen() {
      await prepareStorage(objects, stopping.signal, log);
      await server.listen(config.port, config.host);
    },

    async work() {
      if (!(await migrateWhenReachable(database, stopping.signal, log))) return false;
      if ((await uploads.onlyInstance?.claim(stopping.signal)) === false) return false;
      for (const worker of workers) worker.start();
      return true;
    },

    async stop({ lingerMs }) {
      stopping.abort();
      const end = delay(STOP_MS, undefined, { ref: false });
      await server.drain({ lingerMs, withinMs: DRAIN_MS });
      // Another process continues the work of a stopped worker when its lease ends, and sends again a mail that is not noted.
      await Promise.race([Promise.allSettled(workers.map((worker) => worker.stop())), end]);
      await uploads.onlyInstance?.release();
      await parts.close();
    },
  };
}

const isUp = (part: { ping(): Promise<void> }): Promise<0 | 1> =>
  part.ping().then(
    () => 1,
    () => 0,
  );

/**
 * Waits for an unusable database without a time limit; resolves to false if stopped before. Logs a problem when it is
 * new, then once a minute.
 */
async function migrateWhenReachable(database: Database, stopping: AbortSignal, log: Log): Promise<boolean> {
  const mayReport = createReportLimit();
  let hasFailed = false;
  for (let wait = 100; !stopping.aborted; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
    try {
      const applied = await database.migrate();
      if (hasFailed) log.info('the database is available');
      if (applied.length > 0) log.info({ applied }, 'the schema was migrated');
      return !stopping.aborted;
    } catch (error) {
      const known = describeFailure(error);
      const problem = known ?? 'the database is not ready, waiting for it';
      if (mayReport(problem)) log.warn(known ? {} : { err: error }, problem);
      hasFailed = true;
      // Rejects when the service stops.
      await delay(wait, undefined, { signal: stopping }).catch(() => undefined);
    }
  }
  return false;
}

/** A missing bucket stops the start. A storage that does not respond is retried; until then uploads fail. */
async function prepareStorage(objects: ObjectStorage, stopping: AbortSignal, log: Log): Promise<void> {
  try {
    await objects.prepare();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    log.warn({ err: error }, 'the object storage does not respond, uploads fail until it does');
    delay(STORAGE_RETRY_MS, undefined, { signal: stopping, ref: false }).then(
      () => prepareStorage(objects, stopping, log).catch((late) => log.error({ err: late }, 'uploads cannot work')),
      () => undefined,
    );
  }
}
