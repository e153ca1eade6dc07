import { PortableMigration } from './portable.ts';

/** In milliseconds: an identity that came with its account was linked within this time. */
const SAME_LOGIN_MS = 10_000;

/**
 * Each login method records whether the owner of the inbox added it. Existing methods open their accounts as before, so
 * that an upgrade takes no user's login away. A password of a verified address counts as proven. An identity does if it
 * was linked to an existing account: that took a provider that vouches. An identity that came with its account may be a
 * stranger's, with the mail confirmed by the owner: it is removed by the owner's next reset, or proven by its next login
 * that is vouched for.
 */
export class ProvenMethods extends PortableMigration {
  override async up(): Promise<void> {
    const { key } = this;
    await this.addColumns('users', {
      password_proven: 'tinyint(1) not null default 0',
      password_browser: `varchar(43) ${key}`,
    });
    await this.addColumns('identities', {
      provider: `varchar(32) ${key} not null default 'idp'`,
      proven: 'tinyint(1) not null default 0',
      browser: `varchar(43) ${key}`,
    });
    this.addSql('update users set password_proven = email_verified where password_hash is not null');
    this.addSql(`update identities set
      proven = (select case when identities.created_at > users.created_at + ${SAME_LOGIN_MS} then email_verified else 0 end
        from users where users.id = identities.user_id),
      provider = (select case provider when 'email' then 'idp' else provider end from users where users.id = identities.user_id)`);
  }

  override async down(): Promise<void> {
    await this.dropColumns('identities', ['browser', 'proven', 'provider']);
    await this.dropColumns('users', ['password_browser', 'password_proven']);
  }
}
