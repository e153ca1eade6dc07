import { PortableMigration } from './portable.ts';

/** A mailed code is looked up by the browser that registered. */
export class RegisteringBrowsers extends PortableMigration {
  override async up(): Promise<void> {
    await this.createIndex('users', 'users_browser', { column: 'password_browser' });
    await this.createIndex('identities', 'identities_browser', { column: 'browser' });
  }

  override async down(): Promise<void> {
    this.dropIndex('users', 'users_browser');
    this.dropIndex('identities', 'identities_browser');
  }
}
