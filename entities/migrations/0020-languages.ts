import { PortableMigration } from './portable.ts';

/**
 * Languages by their tags (BCP 47): the one that a user has chosen, that of the browser in which the user last registered or
 * logged in, and that of the request which a mail answers. All are null until then.
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
