import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class AccessKeys extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable(
      'access_keys',
      [
        `id varchar(22) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `name varchar(64) ${text} not null`,
        `secret_hash varchar(43) ${key} not null`,
        `scopes varchar(255) ${key} not null`,
        'epoch int not null',
        'created_at bigint not null',
        'expires_at bigint',
        'last_used_at bigint',
        'constraint access_keys_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { access_keys_of_user: 'user_id' },
    );
  }

  override down(): void {
    this.addSql('drop table access_keys');
  }
}
