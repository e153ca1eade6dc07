/*
 * In WAL mode an acknowledged write survives any end of the process. `synchronous = normal` risks the last moments
 * before a power cut for a tenth of the latency, which suits embedded use.
 */

import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { ensureDirectory } from '../lib/ensure-directory.ts';
import { isDamaged } from './sql-errors.ts';

/** Enough for all statements of the service, with a margin. */
const CACHED_STATEMENTS = 200;

/**
 * A SQLite file behind both embedded parts. A statement that meets another process's lock throws immediately
 * (`isConflict`); the caller retries.
 */
export class SqliteFile {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    ensureDirectory(dirname(path));
    // The file contains password hashes: other users of this machine must not read it.
    closeSync(openSync(path, 'a', 0o600));
    // No busy timeout: SQLite would wait for another process's lock on this thread, and block all requests.
    this.#database = new DatabaseSync(path);
    try {
      this.#database.exec('pragma journal_mode = wal; pragma synchronous = normal;');
    } catch (error) {
      this.#database.close();
      throw isDamaged(error) ? damaged(error, path) : error;
    }
  }

  /** False also if an error, such as a full disk, has already ended the transaction. */
  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Prepares a statement once per text. */
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

/** The same error with the path, and what an operator can do. */
const damaged = (error: Error, path: string): Error =>
  Object.assign(error, {
    message: `${path} is damaged (${error.message}): restore it from a backup, or move it away to begin without it`,
    path,
  });
