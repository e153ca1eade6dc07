import { PortableMigration } from './portable.ts';

/**
 * Indexes with which statements read a bounded number of rows per account. The database computes `topic` and
 * `admitted_at`, so that rows of the version before, which may still run, have them too.
 */
export class BoundedReads extends PortableMigration {
  override async up(): Promise<void> {
    const { key } = this;
    await this.addColumns('activity', {
      topic: `varchar(32) ${key} generated always as (case when kind = 'logged-in' and details like '%"device":"new"%' then 'logged-in:new' else kind end) virtual`,
    });
    await this.addColumns('outbox', {
      admitted_at: 'bigint generated always as (case when token_id is null then null else created_at end) virtual',
    });
    await this.createIndex('activity', 'activity_topics', { column: 'user_id, topic, id' });
    await this.createIndex('sessions', 'sessions_of_epoch', { column: 'user_id, epoch, id' });
    await this.createIndex('outbox', 'outbox_admitted', { column: 'inbox, admitted_at' });
    await this.createIndex('outbox', 'outbox_requests', { column: 'user_id, state, token_id, kind' });
    await this.createIndex('email_changes', 'email_changes_asked', { column: 'user_id, confirmed_at' });
    await this.createIndex('consents', 'consents_by_time', { column: 'user_id, created_at, id' });
  }

  override async down(): Promise<void> {
    this.dropIndex('consents', 'consents_by_time');
    this.dropIndex('email_changes', 'email_changes_asked');
    this.dropIndex('outbox', 'outbox_requests');
    this.dropIndex('outbox', 'outbox_admitted');
    this.dropIndex('sessions', 'sessions_of_epoch');
    this.dropIndex('activity', 'activity_topics');
    await this.dropColumns('outbox', ['admitted_at']);
    await this.dropColumns('activity', ['topic']);
  }
}
