import type { Socket } from 'node:net';
import { type MySqlConnection, MySqlDriver } from '@mikro-orm/mysql';
import { MikroORM } from '@mikro-orm/sql';
import { type Kysely, sql } from 'kysely';
import type { Config } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import { retryingConflicts, withinDeadline } from '../deadline.ts';
import type { Database } from './contract.ts';
import { databaseOptions } from './options.ts';
import { createRowQueue } from './row-queue.ts';
import type { Tables } from './tables.ts';

/** The longest a request waits for the database, waiting for a connection and for its turn included. */
const DEADLINE = { ms: 4000, what: 'the database' };
const PING_DEADLINE = { ...DEADLINE, ms: 1500 };
const MIGRATION_LOCK_SECONDS = 60;
/** Longer than a statement takes to end. A connection that is silent for so long may have no other end any more. */
const SILENCE_MS = 10_000;

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

  /**
   * A transaction within the deadline, in its turn; it is rolled back if it is not committed when the deadline passes.
   */
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
              // The wait for a connection may have outlasted the deadline.
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

    // SQLite has one writer at a time: no other transaction can hold a row.
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
        // If the first transaction did this, it would wait for the connection that it has itself.
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
 * A statement that is given up at the deadline ends in the database too, not long after: a read when its time is over,
 * a write when it has waited so long for a lock (on MariaDB also when its time is over). The executable comments apply
 * to one flavour each.
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
    const { stream } = fresh as typeof fresh & { stream: Socket };
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
