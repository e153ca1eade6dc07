import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class Applications extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable('applications', [
      `id varchar(36) ${key} not null primary key`,
      `name varchar(100) ${text} not null`,
      `kind varchar(16) ${key} not null`,
      // At most 20 addresses of 500 characters.
      `redirect_uris varchar(10240) ${key} not null`,
      `resources varchar(10240) ${key} not null`,
      // At most 50 scopes of 64 characters.
      `scopes varchar(4096) ${key} not null`,
      `token_format varchar(8) ${key} not null`,
      'trusted boolean not null',
      `logo_url varchar(2048) ${text}`,
      `secret_hash varchar(43) ${key}`,
      `former_hash varchar(43) ${key}`,
      'former_until bigint',
      `disabled_by varchar(16) ${key}`,
      `administrator_id varchar(41) ${key}`,
      'created_at bigint not null',
    ]);
  }

  override down(): void {
    this.addSql('drop table applications');
  }
}
