import { PortableMigration } from './portable.ts';

/**
 * The operator's own fields of profiles (PROFILE_FIELDS): one JSON object a user. `unique_values` has the hash of each
 * value that no other user may have.
 */
export class ProfileFields extends PortableMigration {
  override async up(): Promise<void> {
    const { key, isSqlite } = this;
    await this.addColumns('users', {
      fields: isSqlite ? 'text' : 'text character set utf8mb4 collate utf8mb4_bin',
    });
    this.createTable(
      'unique_values',
      [
        `field varchar(32) ${key} not null`,
        `value_hash varchar(43) ${key} not null`,
        `user_id varchar(41) ${key} not null`,
        'primary key (field, value_hash)',
        'constraint unique_values_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { unique_values_of_user: 'user_id, field' },
    );
  }

  override async down(): Promise<void> {
    this.addSql('drop table if exists unique_values');
    await this.dropColumns('users', ['fields']);
  }
}
