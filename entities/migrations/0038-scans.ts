import { PortableMigration } from './portable.ts';

/** What the scanner says about a file: `scan` is null for a file that need not be looked at. */
export class Scans extends PortableMigration {
  override async up(): Promise<void> {
    const { key } = this;
    await this.addColumns('uploads', { scan: `varchar(8) ${key}`, finding: `varchar(100) ${key}` });
  }

  override async down(): Promise<void> {
    await this.dropColumns('uploads', ['scan', 'finding']);
  }
}
