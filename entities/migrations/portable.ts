import { Migration } from '@mikro-orm/migrations';

/**
 * Where MySQL and SQLite differ, so that one hand-written migration serves both. MySQL commits each statement by itself:
 * a table therefore comes with its indexes in one statement, which may be repeated after a crash.
 */
export abstract class PortableMigration extends Migration {
  readonly #sqlite = this.driver.getPlatform().constructor.name === 'SqlitePlatform';

  /** Column attribute of ids, emails and hashes: compared byte by byte. */
  protected readonly key = this.#sqlite ? '' : 'character set ascii collate ascii_bin';

  /** Column attribute of what people write: searched without regard to case. */
  protected readonly text = this.#sqlite ? 'collate nocase' : 'character set utf8mb4 collate utf8mb4_unicode_ci';

  protected createTable(table: string, definitions: string[], indexes: Record<string, string> = {}): void {
    const inline = Object.entries(indexes).map(([name, columns]) => `index ${name} (${columns})`);
    const body = this.#sqlite ? definitions : [...definitions, ...inline];
    this.addSql(`create table if not exists ${table} (${body.join(', ')})${this.#sqlite ? '' : ' engine = InnoDB'}`);
    if (!this.#sqlite) return;
    for (const [name, columns] of Object.entries(indexes)) {
      this.addSql(`create index if not exists ${name} on ${table} (${columns})`);
    }
  }
}
