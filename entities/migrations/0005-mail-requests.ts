import { PortableMigration } from './portable.ts';

/** A row of the outbox may be a request for a mail to an address without a user; a token may be reserved. */
export class MailRequests extends PortableMigration {
  override async up(): Promise<void> {
    const { key, text } = this;
    await this.addColumns('one_time_tokens', { reserved_until: 'bigint' });
    if (this.isSqlite) {
      this.rebuildOutbox([
        `email varchar(254) ${key} not null`,
        `inbox varchar(254) ${key} not null`,
        `user_id varchar(41) ${key}`,
        `detail varchar(255) ${text}`,
      ]);
      this.addSql(`insert into outbox_next (${shared}, user_id, email, inbox)
        select ${shared.replace(/\w+/g, 'outbox.$&')}, user_id, users.email, users.email from outbox join users on users.id = user_id`);
      this.replaceOutbox({ ...indexes, outbox_inbox: 'inbox, created_at' });
      return;
    }
    if (!(await this.hasColumn('outbox', 'inbox'))) {
      this.addSql(`alter table outbox
        drop foreign key outbox_user,
        drop index outbox_recent,
        modify column user_id varchar(41) ${key},
        add column email varchar(254) ${key} not null default '',
        add column inbox varchar(254) ${key} not null default '',
        add column detail varchar(255) ${text},
        add index outbox_inbox (inbox, created_at)`);
    }
    this.addSql(`update outbox join users on users.id = outbox.user_id
      set outbox.email = users.email, outbox.inbox = users.email where outbox.email = ''`);
  }

  /** Requests without a known user are lost. */
  override async down(): Promise<void> {
    const { key } = this;
    this.addSql('alter table one_time_tokens drop column reserved_until');
    this.addSql('delete from outbox where user_id is null or user_id not in (select id from users)');
    if (this.isSqlite) {
      this.rebuildOutbox([
        `user_id varchar(41) ${key} not null`,
        'constraint outbox_user foreign key (user_id) references users (id) on delete cascade',
      ]);
      this.addSql(`insert into outbox_next (${shared}, user_id) select ${shared}, user_id from outbox`);
      this.replaceOutbox({ ...indexes, outbox_recent: 'user_id, kind, created_at' });
      return;
    }
    this.addSql(`alter table outbox
      drop index outbox_inbox,
      drop column email, drop column inbox, drop column detail,
      modify column user_id varchar(41) ${key} not null,
      add index outbox_recent (user_id, kind, created_at),
      add constraint outbox_user foreign key (user_id) references users (id) on delete cascade`);
  }

  /** SQLite cannot change columns or constraints: the table is rebuilt. Its migrations run in one transaction. */
  private rebuildOutbox(definitions: string[]): void {
    const { key } = this;
    const columns = [
      `id varchar(36) ${key} not null primary key`,
      `kind varchar(32) ${key} not null`,
      `token_id varchar(36) ${key}`,
      `state varchar(8) ${key} not null`,
      'attempts int not null',
      'due_at bigint not null',
      'expires_at bigint not null',
      'created_at bigint not null',
    ];
    this.addSql(`create table outbox_next (${[...columns, ...definitions].join(', ')})`);
  }

  private replaceOutbox(indexesOfNext: Record<string, string>): void {
    this.addSql('drop table outbox');
    this.addSql('alter table outbox_next rename to outbox');
    for (const [name, columns] of Object.entries(indexesOfNext)) {
      this.addSql(`create index ${name} on outbox (${columns})`);
    }
  }
}

/** The columns of both forms of the table. */
const shared = 'id, kind, token_id, state, attempts, due_at, expires_at, created_at';
const indexes = { outbox_due: 'state, due_at', outbox_age: 'created_at' };
