/*
 * `row` names the row that a change waits for, such as a user's id; all changes of that row use the same name. At most
 * two of them wait in the database at a time, the others in memory. Changes without a name share half of the
 * connections: name the row if one caller can send many. A change that rejects with SERVICE_UNAVAILABLE has
 * changed nothing, unless the connection broke or the deadline passed during the commit.
 */

import type { EntityManager } from '@mikro-orm/sql';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from './tables.ts';

export type { EntityManager } from '@mikro-orm/sql';
export { sql } from 'kysely';
export { isDuplicate } from '../sql-errors.ts';
export { prepared } from './prepared.ts';
export { retryOnDuplicate } from './retry-on-duplicate.ts';
export { lockShared } from './shared-lock.ts';
export { columnsOf, rowOf, type Tables } from './tables.ts';

/** Reads only: `tables.insertInto` and the like do not compile. */
export type ReadTables = Pick<Kysely<Tables>, 'selectFrom' | 'selectNoFrom' | 'executeQuery' | 'fn'>;
/** The tables within a transaction. */
export type AllTables = Kysely<Tables>;
/** Begins a single statement that changes rows. */
export type WriteTables = Pick<Kysely<Tables>, 'insertInto' | 'updateTable' | 'deleteFrom' | 'executeQuery'>;

/**
 * The database. Every call resolves or rejects within the deadline; an outage rejects with SERVICE_UNAVAILABLE, a
 * deadlock is retried.
 */
export interface Database {
  /** Milliseconds since 1970 by the database's clock: all expiries use this one clock. */
  readonly now: RawBuilder<number>;
  /** Ends a select in a transaction: locks its rows and skips rows that other transactions hold. */
  readonly skipLocked: RawBuilder<unknown>;
  /** After `insert`: skips rows that exist. */
  readonly orIgnore: RawBuilder<unknown>;
  /** Reads only, including everything committed before: for all decisions. */
  query<T>(read: (tables: ReadTables) => Promise<T>): Promise<T>;
  /** True if `queryReplica` differs from `query`. */
  readonly hasReplicas: boolean;
  /** Reads only, from a replica if there is one: the result may be slightly stale. */
  queryReplica<T>(read: (tables: ReadTables) => Promise<T>): Promise<T>;
  /** A single statement that changes rows. */
  write<T>(statement: (tables: WriteTables) => Promise<T>, row?: string): Promise<T>;
  /**
   * Reads and writes, all or nothing. `work` may run more than once: it must have no effect outside the transaction.
   */
  transaction<T>(work: (em: EntityManager, tables: AllTables) => Promise<T>, row?: string): Promise<T>;
  /** A `transaction` without entities: it takes two thirds of the CPU. */
  change<T>(work: (tables: AllTables) => Promise<T>, row?: string): Promise<T>;
  ping(): Promise<void>;
  /**
   * Migrates the schema; several instances may do so concurrently. Until then every other call is refused. Resolves to
   * the names of the applied migrations.
   */
  migrate(): Promise<string[]>;
  /** The names of the migrations that `migrate` would apply. Changes nothing in an existing database. */
  pendingMigrations(): Promise<string[]>;
  close(): Promise<void>;
}

/** The time by `database.now`, in a transaction or a query. */
export async function nowOf({ now }: Pick<Database, 'now'>, tables: Pick<ReadTables, 'selectNoFrom'>): Promise<number> {
  const row = await tables.selectNoFrom(sql<number>`${now}`.as('now')).executeTakeFirstOrThrow();
  return Number(row.now);
}
