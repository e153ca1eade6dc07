import { PortableMigration } from './portable.ts';

/** Where an application sends its users after a logout, and its keys instead of a secret. */
export class LogoutAndKeys extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('applications', {
      // At most 20 addresses of 500 characters.
      post_logout_redirect_uris: `varchar(10240) ${this.key} not null default ''`,
      // A list of at most five, as JSON.
      public_keys: `varchar(8192) ${this.key}`,
    });
  }

  override async down(): Promise<void> {
    await this.dropColumns('applications', ['post_logout_redirect_uris', 'public_keys']);
  }
}
