import { PortableMigration } from './portable.ts';

/** Administrators list the unverified, the blocked and the deleted users: each list is a stretch of an index. */
export class ListsOfAdministrators extends PortableMigration {
  override async up(): Promise<void> {
    await this.createIndex('users', 'users_verified', { column: 'email_verified, id' });
    await this.createIndex('users', 'users_blocked', { column: 'blocked_at, id' });
    await this.createIndex('users', 'users_deleted', { column: 'deleted_at, id' });
  }

  override async down(): Promise<void> {
    this.dropIndex('users', 'users_deleted');
    this.dropIndex('users', 'users_blocked');
    this.dropIndex('users', 'users_verified');
  }
}
