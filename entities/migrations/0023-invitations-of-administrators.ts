import { PortableMigration } from './portable.ts';

/** Invitations end with the role of their sender: those of users who are no longer administrators are deleted. */
export class InvitationsOfAdministrators extends PortableMigration {
  override up(): void {
    this.addSql(
      "delete from invitations where invited_by in (select id from users where role <> 'admin' or blocked_at is not null or deleted_at is not null)",
    );
  }

  /** Nothing to revert. */
  override down(): void {}
}
