import { PortableMigration } from './portable.ts';

/**
 * Times are milliseconds since 1970 (UTC), sizes bytes. No foreign key: an object, and so its row, outlives its user.
 */
export class Uploads extends PortableMigration {
  override async up(): Promise<void> {
    const { key } = this;
    this.createTable(
      'uploads',
      [
        `object_key varchar(64) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `purpose varchar(8) ${key} not null`,
        `content_type varchar(64) ${key} not null`,
        'size bigint not null',
        `state varchar(8) ${key} not null`,
        'expires_at bigint not null',
        'due_at bigint',
        'created_at bigint not null',
      ],
      { uploads_due: 'due_at', uploads_user: 'user_id' },
    );
    // Before an avatar is deleted, a query looks for profiles that still show it.
    await this.createIndex('users', 'users_avatar', { column: 'avatar', prefix: 255 });
  }

  override down(): void {
    this.dropIndex('users', 'users_avatar');
    this.addSql('drop table uploads');
  }
}
