import { PortableMigration } from './portable.ts';

/** The stored bytes and files of each user: the sum of the rows of `uploads`. Rows that no longer count have size 0. */
export class UploadUsages extends PortableMigration {
  override async up(): Promise<void> {
    this.createTable('upload_usage', [
      `user_id varchar(41) ${this.key} not null primary key`,
      'used bigint not null',
      'files bigint not null',
    ]);
    // A repeated run counts again: until the migration is complete, no instance declares an upload.
    this.addSql('delete from upload_usage');
    this.addSql("update uploads set size = 0 where state = 'doomed'");
    this.addSql(
      'insert into upload_usage (user_id, used, files) select user_id, sum(size), count(*) from uploads where size > 0 group by user_id',
    );
    await this.createIndex('uploads', 'uploads_of_user', { column: 'user_id, created_at, object_key' });
  }

  override down(): void {
    this.addSql('drop table if exists upload_usage');
    this.dropIndex('uploads', 'uploads_of_user');
  }
}
