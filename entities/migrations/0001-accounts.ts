import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class Accounts extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable(
      'users',
      [
        `id varchar(41) ${key} not null primary key`,
        `email varchar(254) ${key} not null`,
        `name varchar(100) ${text} not null`,
        `bio varchar(500) ${text}`,
        `location varchar(100) ${text}`,
        `website varchar(2048) ${text}`,
        `avatar varchar(2048) ${text}`,
        `provider varchar(32) ${key} not null`,
        `role varchar(16) ${key} not null`,
        'email_verified tinyint(1) not null',
        `password_hash varchar(255) ${key}`,
        'session_epoch int not null',
        'created_at bigint not null',
        'updated_at bigint not null',
        'constraint users_email unique (email)',
      ],
      { users_name: 'name' },
    );
    this.createTable(
      'one_time_tokens',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `purpose varchar(16) ${key} not null`,
        `token_hash varchar(43) ${key} not null`,
        'expires_at bigint not null',
        'used tinyint(1) not null',
        'constraint one_time_tokens_hash unique (token_hash)',
        'constraint one_time_tokens_one_each unique (user_id, purpose)',
        'constraint one_time_tokens_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { one_time_tokens_expiry: 'expires_at' },
    );
    this.createTable(
      'outbox',
      [
        `id varchar(36) ${key} not null primary key`,
        `kind varchar(32) ${key} not null`,
        `user_id varchar(41) ${key} not null`,
        `token_id varchar(36) ${key}`,
        `state varchar(8) ${key} not null`,
        'attempts int not null',
        'due_at bigint not null',
        'expires_at bigint not null',
        'created_at bigint not null',
        'constraint outbox_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { outbox_due: 'state, due_at', outbox_recent: 'user_id, kind, created_at', outbox_age: 'created_at' },
    );
  }

  override down(): void {
    this.addSql('drop table outbox');
    this.addSql('drop table one_time_tokens');
    this.addSql('drop table users');
  }
}
