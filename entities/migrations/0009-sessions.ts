import { PortableMigration } from './portable.ts';

/**
 * Times are milliseconds since 1970 (UTC). No foreign key: a login would wait for transactions that lock its user, and
 * a row without a user grants nothing.
 */
export class Sessions extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable(
      'sessions',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        'epoch int not null',
        `method varchar(32) ${key} not null`,
        `address varchar(64) ${key} not null`,
        `device varchar(100) ${text} not null`,
        'created_at bigint not null',
        'authenticated_at bigint not null',
        'last_used_at bigint not null',
        'expires_at bigint not null',
      ],
      { sessions_of_user: 'user_id, id', sessions_expiry: 'expires_at' },
    );
  }

  override down(): void {
    this.addSql('drop table sessions');
  }
}
