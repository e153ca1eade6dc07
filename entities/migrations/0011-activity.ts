import { PortableMigration } from './portable.ts';

/**
 * Times are milliseconds since 1970 (UTC). No index on the time: ids are in its order. No foreign key, as with
 * sessions: an insert waits for no transaction that locks the user.
 */
export class Activity extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable(
      'activity',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `kind varchar(32) ${key} not null`,
        `actor varchar(64) ${key} not null`,
        `actor_id varchar(41) ${key}`,
        `address varchar(64) ${key} not null`,
        `device varchar(100) ${text} not null`,
        `request_id varchar(36) ${key} not null`,
        `details varchar(1000) ${text}`,
        'created_at bigint not null',
      ],
      { activity_of_user: 'user_id, id' },
    );
  }

  override down(): void {
    this.addSql('drop table activity');
  }
}
