import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class SigningKeys extends PortableMigration {
  override up(): void {
    const { key } = this;
    this.createTable('signing_keys', [
      `id varchar(36) ${key} not null primary key`,
      `sealed varchar(1024) ${key} not null`,
      'active_at bigint not null',
      'created_at bigint not null',
    ]);
  }

  override down(): void {
    this.addSql('drop table signing_keys');
  }
}
