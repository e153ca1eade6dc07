import { Migration } from '@mikro-orm/migrations';

/**
 * Where MySQL and SQLite differ, so that one hand-written migration serves both. MySQL commits each statement by itself:
 * a table therefore comes with its indexes in one statement, which may be repeated after a crash.
 */
export abstract class PortableMigration extends Migration {
  /**
   * Why this migration may take away something that an earlier one made: the release that was the last to use it. Without a
   * reason the tests refuse what the version before, which runs beside it during an upgrade, cannot live with.
   */
  static readonly contracts?: string;

  protected readonly isSqlite = this.driver.getPlatform().constructor.name === 'SqlitePlatform';

  /** Column attribute of ids, emails and hashes: compared byte by byte. */
  protected readonly key = this.isSqlite ? '' : 'character set ascii collate ascii_bin';

  /** Column attribute of texts that users write: searched without regard to case. */
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
   * Creates an index on a table of an earlier migration. MySQL must be asked whether the index is there already, and
   * indexes only the first characters (`prefix`) of long texts.
   */
  protected async createIndex(table: string, name: string, { column, prefix }: { column: string; prefix?: number }) {
    if (this.isSqlite) {
      this.addSql(`create index if not exists ${name} on ${table} (${column})`);
      return;
    }
    const found = await this.execute(
      `select 1 from information_schema.statistics where table_schema = database() and table_name = '${table}' and index_name = '${name}' limit 1`,
    );
    if (found.length === 0) this.addSql(`create index ${name} on ${table} (${column}${prefix ? `(${prefix})` : ''})`);
  }

  /** Adds columns, by name, to a table of an earlier migration; columns that a crash has left there already stay. */
  protected async addColumns(table: string, columns: Record<string, string>): Promise<void> {
    for (const [name, definition] of Object.entries(columns)) {
      if (!(await this.hasColumn(table, name))) this.addSql(`alter table ${table} add column ${name} ${definition}`);
    }
  }

  protected async dropColumns(table: string, names: string[]): Promise<void> {
    for (const name of names) {
      if (await this.hasColumn(table, name)) this.addSql(`alter table ${table} drop column ${name}`);
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
