import { searchKey } from '../search-key.ts';
import { PortableMigration } from './portable.ts';

const BATCH = 500;

/**
 * Users are found by the key of their name (`searchKey`), in an index with all matches of a prefix side by side.
 * Nullable: an earlier version that still runs writes rows without it. Its collation compares bytes.
 */
export class Search extends PortableMigration {
  override async up(): Promise<void> {
    if (!(await this.hasColumn('users', 'search_name'))) {
      const bytes = this.isSqlite ? '' : 'character set utf8mb4 collate utf8mb4_bin';
      await this.alter('users', `add column search_name varchar(300) ${bytes}`);
    }
    await this.fill();
    if (this.isSqlite) {
      this.addSql('create index if not exists users_search_name on users (search_name, id)');
      this.addSql('drop index if exists users_name');
    } else if (!(await this.hasIndex('users_search_name'))) {
      await this.alter('users', 'add index users_search_name (search_name, id), drop index users_name');
    }
  }

  override async down(): Promise<void> {
    if (this.isSqlite) {
      this.addSql('create index users_name on users (name)');
      this.addSql('drop index users_search_name');
      this.addSql('alter table users drop column search_name');
    } else if (await this.hasIndex('users_search_name')) {
      await this.alter('users', 'add index users_name (name), drop index users_search_name, drop column search_name');
    }
  }

  /**
   * Fills the column in primary-key order, one batch per statement; after a crash it skips rows that have their key.
   */
  private async fill(): Promise<void> {
    for (let last: string | undefined = ''; last !== undefined; ) {
      const rows = await this.execute(
        `select id, name, search_name as searchName from users where id > ? order by id limit ${BATCH}`,
        [last],
      );
      const missing = rows.filter(({ searchName }) => searchName === null);
      if (missing.length > 0) {
        await this.execute(
          `update users set search_name = case id ${missing.map(() => 'when ? then ?').join(' ')} end
           where search_name is null and id in (${missing.map(() => '?').join(', ')})`,
          [...missing.flatMap(({ id, name }) => [id, searchKey(name)]), ...missing.map(({ id }) => id)],
        );
      }
      last = rows.length === BATCH ? rows.at(-1)?.id : undefined;
    }
  }

  private async hasIndex(name: string): Promise<boolean> {
    const found = await this.execute(
      `select 1 from information_schema.statistics where table_schema = database() and table_name = 'users' and index_name = ?`,
      [name],
    );
    return found.length > 0;
  }
}
