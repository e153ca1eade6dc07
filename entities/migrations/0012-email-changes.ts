import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class EmailChanges extends PortableMigration {
  override up(): void {
    const { key } = this;
    this.createTable(
      'email_changes',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `email varchar(254) ${key} not null`,
        `former varchar(254) ${key}`,
        `confirm_hash varchar(43) ${key} not null`,
        `undo_hash varchar(43) ${key} not null`,
        'created_at bigint not null',
        'confirmed_at bigint',
        'expires_at bigint not null',
        'constraint email_changes_confirm unique (confirm_hash)',
        'constraint email_changes_undo unique (undo_hash)',
        'constraint email_changes_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { email_changes_of_user: 'user_id', email_changes_former: 'former', email_changes_expiry: 'expires_at' },
    );
  }

  override down(): void {
    this.addSql('drop table email_changes');
  }
}
