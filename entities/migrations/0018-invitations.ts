import { PortableMigration } from './portable.ts';

/** Times are milliseconds since 1970 (UTC). */
export class Invitations extends PortableMigration {
  override up(): void {
    const { key } = this;
    this.createTable(
      'invitations',
      [
        `id varchar(36) ${key} not null primary key`,
        `email varchar(254) ${key} not null`,
        `token_hash varchar(43) ${key} not null`,
        `invited_by varchar(41) ${key}`,
        'created_at bigint not null',
        'expires_at bigint not null',
        'constraint invitations_email unique (email)',
        'constraint invitations_token unique (token_hash)',
        'constraint invitations_inviter foreign key (invited_by) references users (id) on delete cascade',
      ],
      { invitations_of_inviter: 'invited_by', invitations_expiry: 'expires_at' },
    );
  }

  override down(): void {
    this.addSql('drop table invitations');
  }
}
