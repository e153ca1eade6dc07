import { PortableMigration } from './portable.ts';

/**
 * Languages as BCP 47 tags: the user's choice, that of the browser of the registration or last login, and that of the
 * request behind a mail. All are null until then.
 */
export class Languages extends PortableMigration {
  override async up(): Promise<void> {
    const tag = `varchar(16) ${this.key}`;
    await this.addColumns('users', { language: tag, browser_language: tag });
    await this.addColumns('outbox', { language: tag });
  }

  override async down(): Promise<void> {
    await this.dropColumns('outbox', ['language']);
    await this.dropColumns('users', ['browser_language', 'language']);
  }
}
