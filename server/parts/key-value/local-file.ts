import { isOutage } from '../sql-errors.ts';
import { SqliteFile } from '../sqlite.ts';

/**
 * The file with its tables. Throws a permanent error. A temporary one (file locked, disk full) is retried by
 * each operation.
 */
export function openWhenPossible(path: string) {
  let opened: SqliteFile | undefined;
  let isClosed = false;

  const file = (): SqliteFile => {
    if (isClosed) throw new Error('the store is closed');
    opened ??= openWithTables(path);
    return opened;
  };
  try {
    file();
  } catch (error) {
    if (!isOutage(error)) throw error;
  }
  return {
    file,
    close() {
      isClosed = true;
      opened?.close();
    },
  };
}

function openWithTables(path: string): SqliteFile {
  const file = new SqliteFile(path);
  try {
    file.exec(`
      create table if not exists entries (key text primary key, value text not null, expires_at integer not null) without rowid;
      create table if not exists counters (key text primary key, points integer not null, expire integer) without rowid;
    `);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}
