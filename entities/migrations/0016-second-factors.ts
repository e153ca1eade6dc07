import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class SecondFactors extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable(
      'passkeys',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        // At most 1023 bytes (WebAuthn Level 3, section 4), in base64url.
        `credential_id varchar(1364) ${key} not null`,
        `public_key varchar(2048) ${key} not null`,
        'sign_count bigint not null',
        `transports varchar(255) ${key} not null`,
        'backup_eligible boolean not null',
        'backed_up boolean not null',
        `aaguid varchar(36) ${key} not null`,
        `name varchar(64) ${text} not null`,
        'proven boolean not null',
        'created_at bigint not null',
        'last_used_at bigint',
        'constraint passkeys_credential unique (credential_id)',
        'constraint passkeys_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { passkeys_of_user: 'user_id' },
    );
    this.createTable('totps', [
      `user_id varchar(41) ${key} not null primary key`,
      `secret varchar(255) ${key} not null`,
      'last_step bigint not null',
      'created_at bigint not null',
      'constraint totps_user foreign key (user_id) references users (id) on delete cascade',
    ]);
    this.createTable(
      'recovery_codes',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `code_hash varchar(43) ${key} not null`,
        'created_at bigint not null',
        'used_at bigint',
        'constraint recovery_codes_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { recovery_codes_of_user: 'user_id' },
    );
  }

  override down(): void {
    for (const table of ['recovery_codes', 'totps', 'passkeys']) this.addSql(`drop table ${table}`);
  }
}
