import { setTimeout as delay } from 'node:timers/promises';
import {
  DeadlockException,
  IsolationLevel,
  LockWaitTimeoutException,
  UniqueConstraintViolationException,
} from '@mikro-orm/core';
import { MySqlDriver } from '@mikro-orm/mysql';
import { type EntityManager, MikroORM } from '@mikro-orm/sql';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Config } from '../../config.ts';
import { ServiceError, unavailable } from '../../errors.ts';
import { databaseOptions } from './options.ts';
import { isOutage } from './outage.ts';
import type { Tables } from './tables.ts';

export type { EntityManager } from '@mikro-orm/sql';
export { sql } from 'kysely';

/** The longest a request waits for the database, waiting for a connection included. */
const DEADLINE_MS = 4000;
const PING_DEADLINE_MS = 1500;
const DEADLOCK_RETRIES = 5;
const MIGRATION_LOCK_SECONDS = 60;

/**
 * The database, in two ways: `read` for hot reads (Kysely), `transaction` for rules and writes (MikroORM). Both answer or
 * reject within the deadline; an outage rejects as SERVICE_UNAVAILABLE.
 */
export interface Database {
  /** Milliseconds since 1970 by the database's clock: what expires is judged by this one clock. */
  readonly now: RawBuilder<number>;
  /** Ends a select in a transaction: locks its rows and leaves out those that others hold. */
  readonly skipLocked: RawBuilder<unknown>;
  read<T>(query: (tables: Kysely<Tables>) => Promise<T>): Promise<T>;
  /** All or nothing. A deadlock is tried again, so `work` must have no effect outside the transaction. */
  transaction<T>(work: (em: EntityManager, tables: Kysely<Tables>) => Promise<T>): Promise<T>;
  ping(): Promise<void>;
  /** Brings the schema up to date; any number of instances may do so at once. Until it has, all else is refused. Answers what it applied. */
  migrate(): Promise<string[]>;
  close(): Promise<void>;
}

export async function openDatabase(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<Database> {
  const orm = await MikroORM.init(databaseOptions(config));
  const isMySql = orm.driver instanceof MySqlDriver;
  const tablesOf = (em: EntityManager) => em.getKysely<Tables>();
  let shared: Kysely<Tables> | undefined;

  const ready = (): Kysely<Tables> => {
    if (!shared) throw unavailable(new Error('the schema is not up to date yet'));
    return shared;
  };

  const attempt = <T>(work: (em: EntityManager, tables: Kysely<Tables>) => Promise<T>) =>
    withinDeadline(DEADLINE_MS, (signal) =>
      orm.em.fork({ signal }).transactional(
        async (em) => {
          const result = await work(em, tablesOf(em));
          await em.flush();
          // Whoever asked has been told 503 by now; what he was refused must not happen after all.
          signal.throwIfAborted();
          return result;
        },
        isMySql ? { isolationLevel: IsolationLevel.READ_COMMITTED } : {},
      ),
    );

  const lockedMigration = async () => {
    if (!isMySql) return orm.migrator.up();
    await orm.schema.ensureDatabase();
    return orm.em.fork().transactional(async (em) => {
      const [row] = await em.execute<{ held: number }[]>(
        'select get_lock(concat(database(), ".migrations"), ?) as held',
        [MIGRATION_LOCK_SECONDS],
      );
      if (row?.held !== 1) throw new Error('another instance holds the migration lock');
      try {
        return await orm.migrator.up();
      } finally {
        await em.execute('select release_lock(concat(database(), ".migrations"))');
      }
    });
  };

  return {
    now: isMySql
      ? sql<number>`(timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000)`
      : sql<number>`cast(unixepoch('subsec') * 1000 as integer)`,

    // SQLite has one writer at a time: nobody else can hold a row.
    skipLocked: isMySql ? sql`for update skip locked` : sql``,

    read: (query) => withinDeadline(DEADLINE_MS, () => query(ready())),

    async transaction(work) {
      ready();
      for (let retries = 0; ; retries++) {
        try {
          return await attempt(work);
        } catch (error) {
          if (!isConflict(error)) throw error;
          if (retries === DEADLOCK_RETRIES) throw unavailable(error);
          await delay(Math.random() * 20 * 2 ** retries);
        }
      }
    },

    ping: () => withinDeadline(PING_DEADLINE_MS, () => sql`select 1`.execute(ready())).then(() => undefined),

    async migrate() {
      const applied = await lockedMigration();
      shared = tablesOf(orm.em.fork());
      return applied.map(({ name }) => name);
    },

    close: () => orm.close(true),
  };
}

/** Whether a unique key refused a write: somebody else was first. */
export const isDuplicate = (error: unknown): boolean => error instanceof UniqueConstraintViolationException;

/** MySQL: lock wait timeout, deadlock. What Kysely runs rejects with the driver's own error. */
const conflictNumbers = new Set<unknown>([1205, 1213]);

const isConflict = (error: unknown): boolean =>
  error instanceof DeadlockException ||
  error instanceof LockWaitTimeoutException ||
  (error instanceof Error && conflictNumbers.has((error as { errno?: unknown }).errno));

/** Rejects as SERVICE_UNAVAILABLE when time runs out (the signal then aborts what is still to come) and on an outage. */
async function withinDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController();
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = unavailable(new Error(`the database did not answer within ${ms} ms`));
    abort.abort(error);
    deadline.reject(error);
  }, ms);
  try {
    return await Promise.race([work(abort.signal), deadline.promise]);
  } catch (error) {
    throw !(error instanceof ServiceError) && isOutage(error) ? unavailable(error) : error;
  } finally {
    clearTimeout(timer);
  }
}
