import type { SelectQueryBuilder } from 'kysely';
import { type AllTables, type Database, sql, type Tables } from '../parts/database/contract.ts';

/** Tables used as work queues: `due_at` is when a row may be taken next, or null for never. */
type WorkTable = 'outbox' | 'uploads' | 'removals';

interface Source<Selected, Row> {
  table: WorkTable;
  /** The primary key column, and its value in a row. */
  key: string;
  keyOf(row: Row): string;
  /** How long a row belongs to the process that took it, unless the lease is renewed. */
  leaseMs: number;
  /** The optional column that counts how often a row was taken. */
  counter?: string;
  /** Due rows with the lowest value of this column come first; `values` lists all possible values. */
  turns?: { column: string; values: readonly number[] };
  /** A process works on at most `max` rows with the same value of this column, so that others get a place. */
  shares?: { column: string; valueOf(row: Row): string; max: number };
  /** Selects the rows that may be taken once they are due. */
  select(tables: AllTables): SelectQueryBuilder<Tables, WorkTable, Selected>;
  toRow(selected: Selected): Row;
}

export interface Leases<Row> {
  readonly leaseMs: number;
  /** The maximum number of rows that `take` takes at once; one if there are `shares`. */
  readonly batch?: number | undefined;
  /** Whether `shares` may hold rows back although the process has a free place. */
  hasFull?(inWork: Row[]): boolean;
  /**
   * Takes up to `most` due rows, lowest turn first, then earliest first. Each belongs to one process until its lease
   * ends. `inWork`: the rows that this process has already.
   */
  take(most: number, inWork?: Row[]): Promise<Row[]>;
  /** Extends leases. Skips rows that were completed, or postponed for longer than a lease. */
  renew(rows: Row[]): Promise<void>;
}

/**
 * Leases on the rows of a table, by the database's clock. A lease moves `due_at` ahead: after a crash any process takes
 * the row once that time has passed.
 */
export const createLeases = <Selected, Row>(
  database: Database,
  { table, key, keyOf, leaseMs, counter, turns, shares, select, toRow }: Source<Selected, Row>,
): Leases<Row> => {
  const end = sql<number>`${database.now} + ${leaseMs}`;
  const column = sql.ref(key);
  const among = (rows: Row[]) => sql<boolean>`${column} in (${sql.join(rows.map(keyOf))})`;
  const count = counter === undefined ? sql`` : sql`, ${sql.ref(counter)} = ${sql.ref(counter)} + 1`;

  /** The values of `shares.column` that have no place left. */
  const fullIn = (inWork: Row[]): string[] => {
    if (!shares) return [];
    const rowsOf = [...Map.groupBy(inWork, shares.valueOf)];
    return rowsOf.filter(([, rows]) => rows.length >= shares.max).map(([value]) => value);
  };

  return {
    leaseMs,
    batch: shares && 1,
    hasFull: (inWork) => fullIn(inWork).length > 0,

    take: (most, inWork = []) =>
      database.change(async (tables) => {
        const full = fullIn(inWork);
        const rowsInTurn = turns
          ? select(tables)
              .where(sql<boolean>`${sql.ref(turns.column)} in (${sql.join(turns.values)})`)
              .orderBy(sql.ref(turns.column))
          : select(tables);
        const selected = await rowsInTurn
          .where('due_at', '<=', database.now)
          .$if(full.length > 0, (rows) =>
            rows.where(sql<boolean>`${sql.ref(shares?.column ?? '')} not in (${sql.join(full)})`),
          )
          .orderBy('due_at')
          .limit(shares ? 1 : most)
          .modifyEnd(database.skipLocked)
          .execute();
        const rows = selected.map(toRow);
        if (rows.length > 0) {
          await sql`update ${sql.table(table)} set due_at = ${end}${count} where ${among(rows)}`.execute(tables);
        }
        return rows;
      }),

    async renew(rows) {
      await database.write((tables) =>
        tables.updateTable(table).set({ due_at: end }).where(among(rows)).where('due_at', '<', end).execute(),
      );
    },
  };
};
