import { PortableMigration } from './portable.ts';

/** The object version that its user has confirmed; null until then, and on a storage that never replaces objects. */
export class ConfirmedVersions extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('uploads', { confirmed_version: `varchar(255) ${this.key}` });
  }

  override async down(): Promise<void> {
    await this.dropColumns('uploads', ['confirmed_version']);
  }
}
