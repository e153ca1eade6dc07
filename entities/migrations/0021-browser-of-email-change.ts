import { PortableMigration } from './portable.ts';

/** The hash of the browser that requested a change of address: only that browser can confirm it. */
export class BrowserOfEmailChange extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('email_changes', { browser: `varchar(43) ${this.key}` });
  }

  override async down(): Promise<void> {
    await this.dropColumns('email_changes', ['browser']);
  }
}
