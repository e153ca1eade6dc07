import { PortableMigration } from './portable.ts';

/**
 * A user's row is deleted without the grants: with a month of used tokens that may be too much for one transaction. The
 * removal deletes them in batches. SQLite cannot drop a foreign key, and deletes them at once.
 */
export class GrantsOfRemovedUsers extends PortableMigration {
  static override readonly contracts = 'v0.1.0 and 0.2.0 know no grants';

  override async up(): Promise<void> {
    if (await this.hasForeignKey()) await this.alter('grants', 'drop foreign key grants_user');
  }

  override async down(): Promise<void> {
    if (this.isSqlite || (await this.hasForeignKey())) return;
    await this.execute('delete from grants where user_id not in (select id from users)');
    await this.alter(
      'grants',
      'add constraint grants_user foreign key (user_id) references users (id) on delete cascade',
    );
  }

  private async hasForeignKey(): Promise<boolean> {
    if (this.isSqlite) return false;
    const found = await this.execute(
      "select 1 from information_schema.table_constraints where table_schema = database() and table_name = 'grants' and constraint_name = 'grants_user'",
    );
    return found.length > 0;
  }
}
