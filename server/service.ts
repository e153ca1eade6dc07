import { setTimeout as delay } from 'node:timers/promises';
import { type Config, ConfigError } from './config/index.ts';
import { createApp } from './http/app.ts';
import { devIdentityProvider } from './http/dev/idp/index.ts';
import { securityHeaders } from './http/security.ts';
import { createHttpServer } from './http/server.ts';
import type { Log } from './log.ts';
import type { Database } from './parts/database/contract.ts';
import { describeFailure } from './parts/database/failure.ts';
import { openIdentityProviders } from './parts/identity-provider/index.ts';
import type { ObjectStorage } from './parts/object-storage/contract.ts';
import { createRules, openParts } from './rules.ts';
import type { Secrets } from './secrets.ts';
import { gauges } from './telemetry/metrics.ts';
import { readTexts } from './texts/index.ts';

/** The time for all requests, then for the workers. */
const DRAIN_MS = 7000;
const WORKERS_MS = 1500;
const LONGEST_WAIT_MS = 2000;
const STORAGE_RETRY_MS = 5000;
const REPORT_EVERY_MS = 60_000;

interface Service {
  /** Names of the identity providers, and whether the embedded one is among them. */
  providers: string[];
  embeddedProvider: boolean;
  /**
   * Health and probes are answered from now on; other requests are refused until the database is ready. Rejects when the
   * port is taken, and with ConfigError when the bucket is missing.
   */
  listen(): Promise<void>;
  /** Waits for the database, migrates it and starts the workers. Resolves to false if stopped before. */
  work(): Promise<boolean>;
  /** Completes the requests in flight, of which new ones may come for `lingerMs` more, and closes every part. */
  stop(options: { lingerMs: number }): Promise<void>;
}

/**
 * The whole service on the parts that are configured. It knows no process: neither signals nor the exit. Where it cannot be
 * made, or cannot listen, parts stay open: the process is to end.
 */
export async function createService(
  config: Config,
  { secrets, log }: { secrets: Secrets; log: Log },
): Promise<Service> {
  const texts = readTexts(config.textsDir);
  const parts = await openParts(config, { secrets, log });
  const { database, store, objects } = parts;
  const embeddedProvider = devIdentityProvider(config, { store, secrets, log });
  const identityProviders = openIdentityProviders(embeddedProvider?.clients ?? config.identityProviders);
  const { accounts, uploads } = createRules(config, parts, { identityProviders, secrets, texts, log });
  gauges(async () => ({ account_database_up: await isUp(database) }));
  gauges(async () => ({ account_key_value_store_up: await isUp(store) }));
  const stopping = new AbortController();
  const app = createApp(config, {
    accounts,
    uploads,
    database,
    store,
    objects,
    devIdentityProvider: embeddedProvider,
    texts,
    log,
    stopping: stopping.signal,
  });
  const server = createHttpServer(app, securityHeaders(config));

  return {
    providers: accounts.identityProviders,
    embeddedProvider: embeddedProvider !== undefined,

    async listen() {
      await prepareStorage(objects, stopping.signal, log);
      await server.listen(config.port, config.host);
    },

    async work() {
      if (!(await migrateWhenReachable(database, stopping.signal, log))) return false;
      accounts.outbox.start();
      accounts.removals.start();
      uploads.inspection.start();
      return true;
    },

    async stop({ lingerMs }) {
      stopping.abort();
      await server.drain({ lingerMs, withinMs: DRAIN_MS });
      // Work that a worker cannot finish goes to another process when its lease ends.
      const workers = [accounts.outbox, accounts.removals, uploads.inspection];
      await Promise.race([Promise.all(workers.map((worker) => worker.stop())), delay(WORKERS_MS)]);
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
 * Waits for a database that cannot be used yet, as long as it takes; resolves to false if stopped before. Logs a problem when
 * it is new, then once a minute.
 */
async function migrateWhenReachable(database: Database, stopping: AbortSignal, log: Log): Promise<boolean> {
  let reported: { problem: string; at: number } | undefined;
  for (let wait = 100; !stopping.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      const applied = await database.migrate();
      if (reported) log.info('the database can be used');
      if (applied.length > 0) log.info({ applied }, 'the schema was brought up to date');
      return !stopping.aborted;
    } catch (error) {
      const known = describeFailure(error);
      const problem = known ?? 'the database is not ready, waiting for it';
      if (reported?.problem !== problem || Date.now() - reported.at >= REPORT_EVERY_MS) {
        log.warn(known ? {} : { err: error }, problem);
        reported = { problem, at: Date.now() };
      }
      await delay(wait, undefined, { signal: stopping }).catch(() => undefined);
    }
  }
  return false;
}

/** A missing bucket stops the start. A storage that does not answer is retried, and uploads fail until it does. */
async function prepareStorage(objects: ObjectStorage, stopping: AbortSignal, log: Log): Promise<void> {
  try {
    await objects.prepare();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    log.warn({ err: error }, 'the object storage does not answer, uploads wait for it');
    delay(STORAGE_RETRY_MS, undefined, { signal: stopping, ref: false }).then(
      () => prepareStorage(objects, stopping, log).catch((late) => log.error({ err: late }, 'uploads cannot work')),
      () => undefined,
    );
  }
}
