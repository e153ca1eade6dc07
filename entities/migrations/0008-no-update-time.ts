import { PortableMigration } from './portable.ts';

/** Nothing read the time of a user's last change. */
export class NoUpdateTime extends PortableMigration {
  override async up(): Promise<void> {
    await this.dropColumns('users', ['updated_at']);
  }

  /** The times are lost; the best known value is when the account was created. */
  override async down(): Promise<void> {
    await this.addColumns('users', { updated_at: 'bigint not null default 0' });
    this.addSql('update users set updated_at = created_at');
  }
}
