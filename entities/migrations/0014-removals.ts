import { PortableMigration } from './portable.ts';

/**
 * Times are milliseconds since 1970 (UTC). No foreign key: a removal outlives its user. The hash of a session's token
 * is its key in the store.
 */
export class Removals extends PortableMigration {
  override async up(): Promise<void> {
    const { key } = this;
    this.createTable(
      'removals',
      [
        `user_id varchar(41) ${key} not null primary key`,
        `email varchar(254) ${key}`,
        'begun_at bigint',
        'due_at bigint not null',
      ],
      { removals_due: 'due_at' },
    );
    await this.addColumns('users', { deleted_at: 'bigint' });
    await this.addColumns('sessions', { token_hash: `varchar(43) ${key}` });
    await this.createIndex('outbox', 'outbox_user', { column: 'user_id' });
  }

  override async down(): Promise<void> {
    this.dropIndex('outbox', 'outbox_user');
    await this.dropColumns('sessions', ['token_hash']);
    await this.dropColumns('users', ['deleted_at']);
    this.addSql('drop table removals');
  }
}
