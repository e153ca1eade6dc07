import type { MySqlConnection } from '@mikro-orm/mysql';
import { MikroORM } from '@mikro-orm/sql';
import { type Kysely, sql } from 'kysely';
import type { Config } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import { retryingConflicts, withinDeadline } from '../deadline.ts';
import type { Database } from './contract.ts';
import { migrate } from './migration.ts';
import { limitStatements } from './mysql-connections.ts';
import { databaseOptions } from './options.ts';
import { createRowQueue } from './row-queue.ts';
import type { Tables } from './tables.ts';

/** The longest a request waits for the database, waiting for a connection and for its turn included. */
const DEADLINE = { ms: 4000, what: 'the database' };
const PING_DEADLINE = { ...DEADLINE, ms: 1500 };

export async function openDatabase(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<Database> {
  const orm = await MikroORM.init(await databaseOptions(config));
  const isMySql = Boolean(config.databaseUrl);
  if (isMySql) await limitStatements(orm.driver.getConnection() as MySqlConnection);
  let shared: Kysely<Tables> | undefined;
  let notReady: unknown = new Error('the schema is not up to date yet');

  const ready = (): Kysely<Tables> => {
    if (!shared) throw unavailable(notReady);
    return shared;
  };
  const change = createTransactions(ready);

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
        const applied = await migrate(config);
        // Not within the first transaction, which would wait for the connection that it holds itself.
        await orm.connect();
        shared = orm.em.fork().getKysely<Tables>();
        return applied;
      } catch (error) {
        notReady = error;
        throw error;
      }
    },

    // A connection that breaks while it is closed is closed.
    close: () => orm.close(true).catch(() => undefined),
  };
}

/**
 * Transactions on the tables, each within the deadline and in the turn of its row. One that is not committed at the
 * deadline is rolled back.
 */
const createTransactions = (ready: () => Kysely<Tables>) => {
  const inTurn = createRowQueue();

  return <T>(row: string | undefined, work: (tables: Kysely<Tables>) => Promise<T>): Promise<T> =>
    withinDeadline(DEADLINE, (signal) => {
      const attempt = () =>
        ready()
          .transaction()
          .execute(async (tables) => {
            // The wait for a connection may have outlasted the deadline.
            signal.throwIfAborted();
            const result = await work(tables);
            signal.throwIfAborted();
            return result;
          });
      return inTurn(row, () => {
        signal.throwIfAborted();
        return retryingConflicts(signal, attempt);
      });
    });
};
