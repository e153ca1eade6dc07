import { PortableMigration } from './portable.ts';

/** The trace of the request that caused a mail (W3C Trace Context), if any. */
export class TraceOfMails extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('outbox', { traceparent: `varchar(55) ${this.key}` });
  }

  override async down(): Promise<void> {
    await this.dropColumns('outbox', ['traceparent']);
  }
}
