import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class Identities extends PortableMigration {
  override up(): void {
    const { key } = this;
    this.createTable(
      'identities',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `issuer varchar(255) ${key} not null`,
        `subject varchar(255) ${key} not null`,
        'created_at bigint not null',
        'constraint identities_subject unique (issuer, subject)',
        'constraint identities_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { identities_of_user: 'user_id' },
    );
  }

  override down(): void {
    this.addSql('drop table identities');
  }
}
