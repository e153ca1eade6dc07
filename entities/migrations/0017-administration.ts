import { PortableMigration } from './portable.ts';

/**
 * Blocked users and reset limits: both null until an administrator acts. Administrators are found by their role;
 * changes that remove one write a row of `shared_locks`.
 */
export class Administration extends PortableMigration {
  override async up(): Promise<void> {
    const { key } = this;
    this.createTable('shared_locks', [
      `name varchar(32) ${key} not null primary key`,
      `holder varchar(36) ${key} not null`,
    ]);
    await this.addColumns('users', { blocked_at: 'bigint', limit_epoch: 'int' });
    await this.createIndex('users', 'users_role', { column: 'role' });
  }

  override async down(): Promise<void> {
    this.dropIndex('users', 'users_role');
    await this.dropColumns('users', ['limit_epoch', 'blocked_at']);
    this.addSql('drop table shared_locks');
  }
}
