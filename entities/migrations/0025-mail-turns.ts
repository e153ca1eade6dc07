import { PortableMigration } from './portable.ts';

/** The order in which mails are sent. Mails of the version before, which sets no turn and may still run, go first. */
export class MailTurns extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('outbox', { turn: 'int not null default 0' });
    await this.createIndex('outbox', 'outbox_turns', { column: 'state, turn, due_at' });
  }

  override async down(): Promise<void> {
    this.dropIndex('outbox', 'outbox_turns');
    await this.dropColumns('outbox', ['turn']);
  }
}
