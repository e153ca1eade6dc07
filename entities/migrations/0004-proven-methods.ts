import { PortableMigration } from './portable.ts';

/**
 * Each login method records whether the owner of the inbox added it. What exists counts as proven where the address is
 * verified: an upgrade takes no user's login away.
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
      proven = (select email_verified from users where users.id = identities.user_id),
      provider = (select case provider when 'email' then 'idp' else provider end from users where users.id = identities.user_id)`);
  }

  override async down(): Promise<void> {
    await this.dropColumns('identities', ['browser', 'proven', 'provider']);
    await this.dropColumns('users', ['password_browser', 'password_proven']);
  }
}
