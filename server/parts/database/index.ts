import type { Socket } from 'node:net';
import { type MySqlConnection, MySqlDriver } from '@mikro-orm/mysql';
import { type EntityManager, MikroORM } from '@mikro-orm/sql';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Config } from '../../config.ts';
import { unavailable } from '../../errors.ts';
import { retryingConflicts, withinDeadline } from '../deadline.ts';
import { databaseOptions } from './options.ts';
import { createRowQueue } from './row-queue.ts';
import type { Tables } from './tables.ts';

export type { EntityManager } from '@mikro-orm/sql';
export { sql } from 'kysely';
export { isDuplicate } from '../sql-errors.ts';

/** The longest a request waits for the database, waiting for a connection and for its turn included. */
const DEADLINE = { ms: 4000, what: 'the database' };
const PING_DEADLINE = { ...DEADLINE, ms: 1500 };
const MIGRATION_LOCK_SECONDS = 60;
/** Longer than a statement takes to end. A connection that says nothing for so long may be one that nobody has any more. */
const SILENCE_MS = 10_000;

/** What can be read with, and cannot be written with: `tables.insertInto` and the like do not compile. */
export type ReadTables = Pick<Kysely<Tables>, 'selectFrom' | 'selectNoFrom' | 'executeQuery' | 'fn'>;
/** What a single statement that changes rows begins with. */
export type WriteTables = Pick<Kysely<Tables>, 'insertInto' | 'updateTable' | 'deleteFrom'>;

/**
 * The database. `row` is the row that a change waits for, by any name that the changes of that row share, such as its
 * user's id: of those at most two wait in the database at a time, the others in memory. All three ways answer or reject within the deadline; an outage rejects as SERVICE_UNAVAILABLE, and a
 * deadlock is tried again. Whoever is told SERVICE_UNAVAILABLE by `write` or `transaction` has changed nothing, unless
 * the connection broke while the commit was being answered.
 */
export interface Database {
  /** Milliseconds since 1970 by the database's clock: what expires is judged by this one clock. */
  readonly now: RawBuilder<number>;
  /** Ends a select in a transaction: locks its rows and leaves out those that others hold. */
  readonly skipLocked: RawBuilder<unknown>;
  /** Reads only: a replica may answer. */
  query<T>(read: (tables: ReadTables) => Promise<T>): Promise<T>;
  /** One statement that changes rows. */
  write<T>(statement: (tables: WriteTables) => Promise<T>, row?: string): Promise<T>;
  /** Reads and writes, all or nothing. `work` may run more than once: it must have no effect outside the transaction. */
  transaction<T>(work: (em: EntityManager, tables: Kysely<Tables>) => Promise<T>, row?: string): Promise<T>;
  ping(): Promise<void>;
  /** Brings the schema up to date; any number of instances may do so at once. Until it has, all else is refused. Answers what it applied. */
  migrate(): Promise<string[]>;
  close(): Promise<void>;
}

export async function openDatabase(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<Database> {
  const orm = await MikroORM.init(databaseOptions(config));
  const isMySql = orm.driver instanceof MySqlDriver;
  if (isMySql) await limitStatements(orm.driver.getConnection());
  const inTurn = createRowQueue();
  let shared: Kysely<Tables> | undefined;
  let trouble: unknown = new Error('the schema is not up to date yet');

  const ready = (): Kysely<Tables> => {
    if (!shared) throw unavailable(trouble);
    return shared;
  };

  /** A transaction within the deadline, in its turn; what is not committed when the deadline passes is rolled back. */
  const change = <T>(
    row: string | undefined,
    work: (tables: Kysely<Tables>, signal: AbortSignal) => Promise<T>,
  ): Promise<T> =>
    withinDeadline(DEADLINE, (signal) =>
      inTurn(row, () =>
        retryingConflicts(signal, () => {
          signal.throwIfAborted();
          return ready()
            .transaction()
            .execute(async (tables) => {
              // It may have waited for its connection until nobody waited for it.
              signal.throwIfAborted();
              const result = await work(tables, signal);
              signal.throwIfAborted();
              return result;
            });
        }),
      ),
    );

  return {
    now: isMySql
      ? sql<number>`(timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000)`
      : sql<number>`cast(unixepoch('subsec') * 1000 as integer)`,

    // SQLite has one writer at a time: nobody else can hold a row.
    skipLocked: isMySql ? sql`for update skip locked` : sql``,

    query: (read) => withinDeadline(DEADLINE, (signal) => retryingConflicts(signal, () => read(ready()))),

    write: (statement, row) => change(row, statement),

    transaction: (work, row) =>
      change(row, async (tables) => {
        const em = orm.em.fork();
        em.setTransactionContext(tables);
        const result = await work(em, tables);
        await em.flush();
        return result;
      }),

    ping: () => withinDeadline(PING_DEADLINE, () => sql`select 1`.execute(ready())).then(() => undefined),

    async migrate() {
      try {
        const applied = await migrateAlone(config);
        // Left to the first transaction, it would wait for the connection that the transaction has.
        await orm.connect();
        shared = orm.em.fork().getKysely<Tables>();
        return applied;
      } catch (error) {
        trouble = error;
        throw error;
      }
    },

    // A connection that breaks while it is closed is closed.
    close: () => orm.close(true).catch(() => undefined),
  };
}

/**
 * What is given up at the deadline ends in the database too, not long after: a read when its time is over, a write when it
 * has waited so long for a lock (on MariaDB also when its time is over). Comments for one flavour are none to it alone.
 */
async function limitStatements(connection: MySqlConnection): Promise<void> {
  const limits = `set session innodb_lock_wait_timeout = 3
    /*!50720 , max_execution_time = 3500, transaction_isolation = 'READ-COMMITTED' */
    /*M!100100 , max_statement_time = 3.5, tx_isolation = 'READ-COMMITTED' */`;
  const pool = await connection.getNativeClient();
  pool.on('connection', (fresh) => {
    // Sent before anything else on a new connection.
    fresh.query(limits, (error) => error && fresh.destroy());
    // A failover or a firewall may drop a connection without a word: left in the pool, it would be waited for as long as TCP does.
    const { stream } = fresh as unknown as { stream: Socket };
    stream.setTimeout(SILENCE_MS, () => stream.destroy(new SilentConnection()));
  });
}

class SilentConnection extends Error {
  readonly code = 'ETIMEDOUT';

  constructor() {
    super(`the database said nothing for ${SILENCE_MS} ms`);
  }
}

/** Migrates on connections of its own, whose statements may take as long as they need, one instance at a time. */
async function migrateAlone(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<string[]> {
  const orm = await MikroORM.init(databaseOptions(config));
  try {
    const applied = await (orm.driver instanceof MySqlDriver ? lockedMigration(orm) : orm.migrator.up());
    return applied.map(({ name }) => name);
  } finally {
    await orm.close(true);
  }
}

async function lockedMigration(orm: MikroORM) {
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
}
