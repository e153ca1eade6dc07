import type { EntityManager } from '@mikro-orm/sql';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from './tables.ts';

export type { EntityManager } from '@mikro-orm/sql';
export { sql } from 'kysely';
export { isDuplicate } from '../sql-errors.ts';
export { prepared } from './prepared.ts';
export { columnsOf, rowOf, type Tables } from './tables.ts';

/** Reads only: `tables.insertInto` and the like do not compile. */
export type ReadTables = Pick<Kysely<Tables>, 'selectFrom' | 'selectNoFrom' | 'executeQuery' | 'fn'>;
/** A transaction's view. */
export type AllTables = Kysely<Tables>;
/** Begins a single statement that changes rows. */
export type WriteTables = Pick<Kysely<Tables>, 'insertInto' | 'updateTable' | 'deleteFrom' | 'executeQuery'>;

/** A change of which the common case is one statement. */
export interface Attempt<T> {
  /**
   * One statement, which the database commits by itself. It must demand `now <= latest`, so that one which begins too late
   * in the database, because that was frozen, changes nothing: its caller has been told SERVICE_UNAVAILABLE by then.
   * Answers undefined where it changed nothing.
   */
  statement(tables: WriteTables, latest: number): Promise<T | undefined>;
  /** The same change as a `transaction`, for any other case. */
  otherwise(em: EntityManager, tables: AllTables): Promise<T>;
  row?: string;
}

/**
 * The database. `row` is the row that a change waits for, by any name that the changes of that row share, such as its
 * user's id: at most two of these changes wait in the database at a time, the others in memory. All ways answer
 * or reject within the deadline; an outage rejects as SERVICE_UNAVAILABLE, and a deadlock is tried again. Any but
 * a `query` that rejects as SERVICE_UNAVAILABLE has changed nothing, unless the connection broke, or the deadline
 * passed, while the commit was being answered.
 */
export interface Database {
  /** Milliseconds since 1970 by the database's clock: every expiry is judged by this one clock. */
  readonly now: RawBuilder<number>;
  /** Ends a select in a transaction: locks its rows and leaves out those that other transactions hold. */
  readonly skipLocked: RawBuilder<unknown>;
  /** Reads only, and all that was committed before: for whatever decides something. */
  query<T>(read: (tables: ReadTables) => Promise<T>): Promise<T>;
  /** Whether `queryReplica` differs from `query`. */
  readonly hasReplicas: boolean;
  /** Reads only, from a replica where there is one: what it shows may be a little behind. */
  queryReplica<T>(read: (tables: ReadTables) => Promise<T>): Promise<T>;
  /** One statement that changes rows. */
  write<T>(statement: (tables: WriteTables) => Promise<T>, row?: string): Promise<T>;
  /**
   * Reads and writes, all or nothing. `work` may run more than once: it must have no effect outside the transaction.
   */
  transaction<T>(work: (em: EntityManager, tables: AllTables) => Promise<T>, row?: string): Promise<T>;
  /** A `transaction` of statements alone: without entities it takes two thirds of the CPU. */
  change<T>(work: (tables: AllTables) => Promise<T>, row?: string): Promise<T>;
  /** A `transaction` that one statement, in one round trip, usually saves. */
  attempt<T>(change: Attempt<T>): Promise<T>;
  ping(): Promise<void>;
  /**
   * Brings the schema up to date; any number of instances may do so at once. Until it has, every other call is refused.
   * Answers the migrations that it applied.
   */
  migrate(): Promise<string[]>;
  /** The names of the migrations that `migrate` would apply. Changes nothing in a database that exists. */
  pendingMigrations(): Promise<string[]>;
  close(): Promise<void>;
}

/** The time by `database.now`, in a transaction or a query. */
export async function nowOf({ now }: Pick<Database, 'now'>, tables: Pick<ReadTables, 'selectNoFrom'>): Promise<number> {
  const row = await tables.selectNoFrom(sql<number>`${now}`.as('now')).executeTakeFirstOrThrow();
  return Number(row.now);
}
