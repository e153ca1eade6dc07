import { DatabaseSync } from 'node:sqlite';

/**
 * Keys, such as addresses, with the first line of each, in a temporary SQLite file that deletes itself: a long list
 * would fill the memory.
 */
export function createSeen() {
  const database = new DatabaseSync('');
  database.exec('pragma journal_mode = off; pragma synchronous = off; pragma locking_mode = exclusive');
  database.exec('create table seen (key text primary key, line integer not null) without rowid');
  database.exec('begin');
  const find = database.prepare('select line from seen where key = ?');
  const insert = database.prepare('insert into seen (key, line) values (?, ?)');

  return {
    /** The first key that an earlier line has. Without one, registers all keys for this line. */
    firstWith(keys: readonly string[], line: number): { key: string; line: number } | undefined {
      for (const key of keys) {
        const found = find.get(key);
        if (found) return { key, line: Number(found['line']) };
      }
      for (const key of new Set(keys)) insert.run(key, line);
      return undefined;
    },

    close: (): void => database.close(),
  };
}
