import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class Consents extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable(
      'consents',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        // At most two addresses of 1000 characters.
        `version varchar(2048) ${text} not null`,
        'created_at bigint not null',
        'constraint consents_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { consents_of_user: 'user_id' },
    );
  }

  override down(): void {
    this.addSql('drop table consents');
  }
}
