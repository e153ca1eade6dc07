/*
 * A password of a verified address counts as proven. So does an identity linked to an existing account: that required a
 * provider that vouches. An identity created with its account may be a stranger's, with the mail confirmed by the
 * owner: the owner's next reset removes it, or the owner's next vouched login proves it.
 */

import { PortableMigration } from './portable.ts';

/** In milliseconds: an identity linked within this time was created with its account. */
const SAME_LOGIN_MS = 10_000;

/**
 * Each login method records whether the owner of the inbox added it. Existing methods keep working, so that an upgrade
 * locks no user out.
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
