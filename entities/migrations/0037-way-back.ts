import { laterWords, searchKey } from '../search-key.ts';
import { PortableMigration } from './portable.ts';

const BATCH = 500;
const mailed = ['one_time_tokens', 'invitations'];

/**
 * Where the page of a mailed link leads; null without `returnTo`. For a requested mail in a table of its own: MariaDB adds no
 * column to `outbox` online, which has an index on a virtual one. The end of the lease of the instance that keeps the files.
 * And the later words of names, for the search of administrators.
 */
export class WayBack extends PortableMigration {
  override async up(): Promise<void> {
    const { key, isSqlite } = this;
    for (const table of mailed) await this.addColumns(table, { return_to: `varchar(2048) ${key}` });
    await this.addColumns('shared_locks', { expires_at: 'bigint' });
    this.createTable('mail_targets', [
      `mail_id varchar(36) ${key} not null primary key`,
      `return_to varchar(2048) ${key} not null`,
      'constraint mail_targets_mail foreign key (mail_id) references outbox (id) on delete cascade',
    ]);
    this.createTable(
      'name_words',
      [
        `user_id varchar(41) ${key} not null`,
        `word varchar(300) ${isSqlite ? '' : 'character set utf8mb4 collate utf8mb4_bin'} not null`,
        'primary key (user_id, word)',
        'constraint name_words_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { name_words_word: 'word, user_id' },
    );
    for (const statement of this.getQueries().splice(0)) await this.execute(String(statement));
    await this.fill();
  }

  override async down(): Promise<void> {
    for (const table of mailed) await this.dropColumns(table, ['return_to']);
    await this.dropColumns('shared_locks', ['expires_at']);
    this.addSql('drop table name_words');
    this.addSql('drop table mail_targets');
  }

  /** In primary-key order, one batch per statement; after a crash rows that exist are skipped. */
  private async fill(): Promise<void> {
    for (let last: string | undefined = ''; last !== undefined; ) {
      const users = await this.execute(`select id, name from users where id > ? order by id limit ${BATCH}`, [last]);
      const words = users.flatMap(({ id, name }) => laterWords(searchKey(name)).flatMap((word) => [id, word]));
      if (words.length > 0) {
        const rows = Array.from({ length: words.length / 2 }, () => '(?, ?)').join(', ');
        await this.execute(
          `insert ${this.isSqlite ? 'or ignore' : 'ignore'} into name_words (user_id, word) values ${rows}`,
          words,
        );
      }
      last = users.length === BATCH ? users.at(-1)?.id : undefined;
    }
  }
}
