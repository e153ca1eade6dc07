import { PortableMigration } from './portable.ts';

/** The address at the provider, for the list that users see; unknown until the next login with the identity. */
export class IdentityEmail extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('identities', { email: `varchar(254) ${this.key}` });
  }

  override async down(): Promise<void> {
    await this.dropColumns('identities', ['email']);
  }
}
