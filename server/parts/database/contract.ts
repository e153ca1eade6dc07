import type { EntityManager } from '@mikro-orm/sql';
import type { Kysely, RawBuilder } from 'kysely';
import type { Tables } from './tables.ts';

export type { EntityManager } from '@mikro-orm/sql';
export { sql } from 'kysely';
export { isDuplicate } from '../sql-errors.ts';
export { columnsOf, type Tables } from './tables.ts';

/** Reads only: `tables.insertInto` and the like do not compile. */
export type ReadTables = Pick<Kysely<Tables>, 'selectFrom' | 'selectNoFrom' | 'executeQuery' | 'fn'>;
/** A transaction's view. */
export type AllTables = Kysely<Tables>;
/** Begins a single statement that changes rows. */
export type WriteTables = Pick<Kysely<Tables>, 'insertInto' | 'updateTable' | 'deleteFrom'>;

/**
 * The database. `row` is the row that a change waits for, by any name that the changes of that row share, such as its
 * user's id: at most two of these changes wait in the database at a time, the others in memory. All three ways answer
 * or reject within the deadline; an outage rejects as SERVICE_UNAVAILABLE, and a deadlock is tried again. A `write` or
 * `transaction` that rejects as SERVICE_UNAVAILABLE has changed nothing, unless the connection broke while the commit
 * was being answered.
 */
export interface Database {
  /** Milliseconds since 1970 by the database's clock: every expiry is judged by this one clock. */
  readonly now: RawBuilder<number>;
  /** Ends a select in a transaction: locks its rows and leaves out those that other transactions hold. */
  readonly skipLocked: RawBuilder<unknown>;
  /** Reads only: a replica may answer. */
  query<T>(read: (tables: ReadTables) => Promise<T>): Promise<T>;
  /** One statement that changes rows. */
  write<T>(statement: (tables: WriteTables) => Promise<T>, row?: string): Promise<T>;
  /**
   * Reads and writes, all or nothing. `work` may run more than once: it must have no effect outside the transaction.
   */
  transaction<T>(work: (em: EntityManager, tables: AllTables) => Promise<T>, row?: string): Promise<T>;
  ping(): Promise<void>;
  /**
   * Brings the schema up to date; any number of instances may do so at once. Until it has, every other call is refused.
   * Answers the migrations that it applied.
   */
  migrate(): Promise<string[]>;
  close(): Promise<void>;
}
