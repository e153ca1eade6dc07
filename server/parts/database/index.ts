import { MikroORM } from '@mikro-orm/sql';
import { type Kysely, sql } from 'kysely';
import type { Config } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { retryingConflicts, withinDeadline } from '../deadline.ts';
import type { AllTables, Database, EntityManager } from './contract.ts';
import { migrate, pendingMigrations } from './migration.ts';
import { databaseOptions } from './options.ts';
import { openReplicas } from './replicas.ts';
import { createRowQueue } from './row-queue.ts';
import type { Tables } from './tables.ts';

/** The maximum wait of a request for the database, including the wait for a connection and for its row's turn. */
const DEADLINE = { ms: 4000, what: 'the database' };
const limits = { lockWaitSeconds: 2, lostAfterSeconds: 15 };
const PING_DEADLINE = { ...DEADLINE, ms: 1500 };

export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'> & Partial<Pick<Config, 'databaseReplicaUrls'>>,
  log?: Log,
): Promise<Database> {
  // Not by `init`, which loads every installed extension.
  const orm = new MikroORM(await databaseOptions(config, { limits, log }));
  const isMySql = Boolean(config.databaseUrl);
  const replicaUrls = config.databaseReplicaUrls ?? [];
  const replicas = replicaUrls.length > 0 ? await openReplicas(replicaUrls, { limits, log }) : undefined;
  let shared: Kysely<Tables> | undefined;
  let notReady: unknown = new Error('the schema is not up to date yet');

  const ready = (): Kysely<Tables> => {
    if (!shared) throw unavailable(notReady);
    return shared;
  };
  const change = createTransactions(ready);
  const now = isMySql
    ? sql<number>`(timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000)`
    : sql<number>`cast(unixepoch('subsec') * 1000 as integer)`;
  const inTransaction =
    <T>(work: (em: EntityManager, tables: AllTables) => Promise<T>) =>
    async (tables: AllTables): Promise<T> => {
      const em = orm.em.fork();
      em.setTransactionContext(tables);
      const result = await work(em, tables);
      await em.flush();
      return result;
    };

  return {
    now,

    // SQLite has one writer at a time: no other transaction can hold a row.
    skipLocked: isMySql ? sql`for update skip locked` : sql``,

    orIgnore: isMySql ? sql`ignore` : sql`or ignore`,

    query: (read) => withinDeadline(DEADLINE, (signal) => retryingConflicts(signal, () => read(ready()))),

    hasReplicas: replicas !== undefined,

    queryReplica: (read) =>
      withinDeadline(DEADLINE, (signal) => {
        const tables = ready();
        const primary = () => retryingConflicts(signal, () => read(tables));
        return replicas ? replicas.query(read, primary) : primary();
      }),

    write: (statement, row) => change(row, statement),

    change: (work, row) => change(row, work),

    transaction: (work, row) => change(row, inTransaction(work)),

    ping: () => withinDeadline(PING_DEADLINE, () => sql`select 1`.execute(ready())).then(() => undefined),

    async pendingMigrations() {
      await orm.connect();
      return pendingMigrations(orm.em.fork().getKysely());
    },

    async migrate() {
      try {
        // Not within the first transaction: it would wait for the connection that it holds itself.
        await orm.connect();
        const tables = orm.em.fork().getKysely<Tables>();
        const isUpToDate = (await pendingMigrations(tables)).length === 0;
        const applied = isUpToDate ? [] : await migrate(config, { now, log });
        shared = tables;
        return applied;
      } catch (error) {
        notReady = error;
        throw error;
      }
    },

    // A connection that breaks while closing is closed.
    async close() {
      await Promise.all([replicas?.close(), orm.close(true).catch(() => undefined)]);
    },
  };
}

/**
 * Runs transactions within the deadline and in the turn of their row. A transaction not committed by the deadline is
 * rolled back.
 */
const createTransactions = (ready: () => AllTables) => {
  const inTurn = createRowQueue();

  return <T>(row: string | undefined, work: (tables: AllTables) => Promise<T>): Promise<T> =>
    withinDeadline(DEADLINE, (signal) => {
      const transact = () =>
        ready()
          .transaction()
          .execute(async (tables) => {
            // The wait for a connection may have exceeded the deadline.
            signal.throwIfAborted();
            const result = await work(tables);
            signal.throwIfAborted();
            return result;
          });
      return inTurn(row, () => {
        signal.throwIfAborted();
        return retryingConflicts(signal, transact);
      });
    });
};
