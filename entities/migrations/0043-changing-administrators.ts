import { PortableMigration } from './portable.ts';

/** Who changed a webhook or an application last: it ends with the role of this administrator too. */
export class ChangingAdministrators extends PortableMigration {
  override async up(): Promise<void> {
    for (const table of ['webhooks', 'applications']) {
      await this.addColumns(table, { changed_by: `varchar(41) ${this.key}` });
    }
    // An earlier release left them when the role of an administrator ended.
    this.addSql(
      "delete from webhooks where types = 'logout' and id in (select id from applications where disabled_by is not null)",
    );
  }

  override async down(): Promise<void> {
    for (const table of ['webhooks', 'applications']) await this.dropColumns(table, ['changed_by']);
  }
}
