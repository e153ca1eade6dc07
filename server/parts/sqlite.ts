import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { ensureDirectory } from '../directory.ts';

/** As many statements as the service has, and some room. */
const CACHED_STATEMENTS = 200;

/**
 * A SQLite file behind both embedded parts. In WAL mode an acknowledged write outlives the process however it ends;
 * `synchronous = normal` trades the last moments before a power cut for a tenth of the latency, which suits embedded
 * use. A statement that meets another process's lock throws at once (`isConflict`): the caller tries again later.
 */
export class SqliteFile {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    ensureDirectory(dirname(path));
    // The file contains password hashes: no other user of this machine reads them.
    closeSync(openSync(path, 'a', 0o600));
    // Without a busy timeout: SQLite would wait for another process's lock on this thread, and so would all requests.
    this.#database = new DatabaseSync(path);
    try {
      this.#database.exec('pragma journal_mode = wal; pragma synchronous = normal;');
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** False also where an error, such as a full disk, has ended the transaction already. */
  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Prepares a statement, once for each text. */
  prepare(sql: string): StatementSync {
    const cached = this.#statements.get(sql);
    if (cached) return cached;
    const statement = this.#database.prepare(sql);
    if (this.#statements.size >= CACHED_STATEMENTS) this.#statements.clear();
    this.#statements.set(sql, statement);
    return statement;
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}
