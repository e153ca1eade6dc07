/*
 * Transactions take the write lock when they begin: with a later lock two of them could wait for each other. A
 * transaction that an error has ended is not rolled back, because the error of the rollback would hide the first.
 */

import type { SQLInputValue } from 'node:sqlite';
import { SqliteDialect } from 'kysely';
import { SqliteFile } from '../sqlite.ts';

const answersRows = /^\s*(?:select|pragma|explain|with)\b|\breturning\b/i;

const nothing = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [][Symbol.iterator](),
};

/**
 * Kysely on node:sqlite with a cache of prepared statements: an insert takes an eighth of the time of the stock
 * dialect, which prepares each one again.
 */
export const sqliteDialect = (path: string): SqliteDialect =>
  new SqliteDialect({
    database: async () => {
      const file = new SqliteFile(path);
      return {
        close: () => file.close(),
        prepare(sql) {
          if (sql === 'rollback' && !file.isInTransaction) return nothing;
          const statement = file.prepare(sql === 'begin' ? 'begin immediate' : sql);
          const values = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
          return {
            reader: answersRows.test(sql),
            all: (parameters) => statement.all(...values(parameters)),
            run: (parameters) => statement.run(...values(parameters)),
            iterate: (parameters) => statement.iterate(...values(parameters)),
          };
        },
      };
    },
  });
