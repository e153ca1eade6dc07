import { PortableMigration } from './portable.ts';

/**
 * No foreign key, as with activity: an insert waits for no transaction that locks the user or the webhook. The index of
 * a user's deliveries finds the first one that waits.
 */
export class Webhooks extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable('webhooks', [
      `id varchar(36) ${key} not null primary key`,
      `url varchar(2048) ${text} not null`,
      `types varchar(2000) ${key} not null`,
      `include varchar(64) ${key} not null`,
      `description varchar(200) ${text} not null`,
      `secret varchar(512) ${key} not null`,
      `former_secret varchar(512) ${key}`,
      'former_until bigint',
      `disabled_by varchar(16) ${key}`,
      'enabled_at bigint not null',
      'failing_since bigint',
      'due_at bigint not null',
      `owner varchar(36) ${key}`,
      `administrator_id varchar(41) ${key}`,
      'created_at bigint not null',
    ]);
    this.createTable(
      'webhook_deliveries',
      [
        `webhook_id varchar(36) ${key} not null`,
        `event_id varchar(36) ${key} not null`,
        'number bigint not null',
        `kind varchar(32) ${key} not null`,
        `user_id varchar(41) ${key} not null`,
        `state varchar(16) ${key} not null`,
        'attempts int not null',
        'due_at bigint',
        'status int',
        `error varchar(32) ${key}`,
        `answer varchar(1000) ${text}`,
        'created_at bigint not null',
        'tried_at bigint',
        'primary key (webhook_id, event_id)',
      ],
      {
        webhook_deliveries_due: 'webhook_id, due_at, number, user_id',
        webhook_deliveries_of_user: 'user_id, webhook_id, due_at, number',
      },
    );
  }

  override down(): void {
    this.addSql('drop table webhook_deliveries');
    this.addSql('drop table webhooks');
  }
}
