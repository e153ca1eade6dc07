import { PortableMigration } from './portable.ts';

/** Where an application is told that logins at it have ended, and which logins it was told of. */
export class BackchannelLogout extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('applications', { backchannel_logout_uri: `varchar(500) ${this.key}` });
    await this.addColumns('grants', { logout_told_at: 'bigint' });
  }

  override async down(): Promise<void> {
    await this.dropColumns('applications', ['backchannel_logout_uri']);
    await this.dropColumns('grants', ['logout_told_at']);
  }
}
