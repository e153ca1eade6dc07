import { Migration } from '@mikro-orm/migrations';

/**
 * MySQL's ways to change a table during requests, fastest first; the last allows the server to lock the table as long
 * as it needs.
 */
const ONLINE = ['algorithm=instant', 'algorithm=inplace, lock=none', undefined];
/** Unknown algorithm; not supported, with and without a reason; changed instantly too often (MySQL). */
const NOT_ONLINE = new Set([1800, 1845, 1846, 4092]);

/**
 * Hides the differences of MySQL and SQLite from hand-written migrations. MySQL commits each statement separately: a
 * table is created with its indexes in one statement, which may be repeated after a crash.
 */
export abstract class PortableMigration extends Migration {
  /**
   * The last release that used what this migration drops. Without it the tests refuse changes that break the version
   * before, which still runs during an upgrade.
   */
  static readonly contracts?: string;

  protected readonly isSqlite = this.driver.getPlatform().constructor.name === 'SqlitePlatform';

  /** Column attribute of ids, emails and hashes: compared byte by byte. */
  protected readonly key = this.isSqlite ? '' : 'character set ascii collate ascii_bin';

  /** Column attribute of texts from users: searched case-insensitively. */
  protected readonly text = this.isSqlite ? 'collate nocase' : 'character set utf8mb4 collate utf8mb4_unicode_ci';

  protected createTable(table: string, definitions: string[], indexes: Record<string, string> = {}): void {
    const inline = Object.entries(indexes).map(([name, columns]) => `index ${name} (${columns})`);
    const body = this.isSqlite ? definitions : [...definitions, ...inline];
    this.addSql(`create table if not exists ${table} (${body.join(', ')})${this.isSqlite ? '' : ' engine = InnoDB'}`);
    if (!this.isSqlite) return;
    for (const [name, columns] of Object.entries(indexes)) {
      this.addSql(`create index if not exists ${name} on ${table} (${columns})`);
    }
  }

  /**
   * Creates an index on a table of an earlier migration. On MySQL it checks first whether the index exists, and indexes
   * only `prefix` characters of long texts.
   */
  protected async createIndex(table: string, name: string, { column, prefix }: { column: string; prefix?: number }) {
    if (this.isSqlite) {
      this.addSql(`create index if not exists ${name} on ${table} (${column})`);
      return;
    }
    const found = await this.execute(
      `select 1 from information_schema.statistics where table_schema = database() and table_name = '${table}' and index_name = '${name}' limit 1`,
    );
    if (found.length === 0) await this.alter(table, `add index ${name} (${column}${prefix ? `(${prefix})` : ''})`);
  }

  /**
   * Changes a table of an earlier migration, after the statements added so far, without blocking requests if possible.
   * Each algorithm is named, because the server would choose one silently.
   */
  protected async alter(table: string, change: string): Promise<void> {
    for (const statement of this.getQueries().splice(0)) await this.execute(String(statement));
    const statement = `alter table ${table} ${change}`;
    if (this.isSqlite) {
      await this.execute(statement);
      return;
    }
    for (const way of ONLINE) {
      try {
        await this.execute(way ? `${statement}, ${way}` : statement);
        return;
      } catch (error) {
        if (!way || !NOT_ONLINE.has((error as { errno?: number }).errno ?? 0)) throw error;
      }
    }
  }

  /** Adds columns, by name, to a table of an earlier migration; skips columns that exist after a crash. */
  protected async addColumns(table: string, columns: Record<string, string>): Promise<void> {
    for (const [name, definition] of Object.entries(columns)) {
      if (!(await this.hasColumn(table, name))) await this.alter(table, `add column ${name} ${definition}`);
    }
  }

  protected async dropColumns(table: string, names: string[]): Promise<void> {
    for (const name of names) {
      if (await this.hasColumn(table, name)) await this.alter(table, `drop column ${name}`);
    }
  }

  protected async hasColumn(table: string, column: string): Promise<boolean> {
    const found = await this.execute(
      this.isSqlite
        ? `select 1 from pragma_table_info('${table}') where name = '${column}'`
        : `select 1 from information_schema.columns where table_schema = database() and table_name = '${table}' and column_name = '${column}'`,
    );
    return found.length > 0;
  }

  protected dropIndex(table: string, name: string): void {
    this.addSql(this.isSqlite ? `drop index ${name}` : `drop index ${name} on ${table}`);
  }
}
