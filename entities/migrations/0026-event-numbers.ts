import { PortableMigration } from './portable.ts';

/**
 * The stream of public events begins here: events from before get the number 0. Events of the release before, which may
 * still run, get a number like all others. Before 0027, because MariaDB adds no column online to a table with an
 * indexed virtual one.
 */
export class EventNumbers extends PortableMigration {
  override async up(): Promise<void> {
    await (this.isSqlite ? this.#addToSqlite() : this.#addToMysql());
    await this.createIndex('activity', 'activity_by_number', { column: 'number, created_at, id' });
    this.createTable('event_sequence', [
      'id tinyint not null primary key',
      'last_number bigint not null',
      'expired_number bigint not null',
      `owner varchar(36) ${this.key} not null`,
      'ends_at bigint not null',
    ]);
    const ignore = this.isSqlite ? 'insert or ignore' : 'insert ignore';
    this.addSql(
      `${ignore} into event_sequence (id, last_number, expired_number, owner, ends_at) values (1, 0, 0, '', 0)`,
    );
  }

  override async down(): Promise<void> {
    this.addSql('drop table event_sequence');
    this.dropIndex('activity', 'activity_by_number');
    await this.dropColumns('activity', ['number']);
  }

  /** The default fills existing rows without writing them; then it changes for new ones. */
  async #addToMysql(): Promise<void> {
    await this.addColumns('activity', { number: 'bigint default 0' });
    await this.alter('activity', 'alter column number set default null');
  }

  /** SQLite cannot change a default. No other release runs beside. */
  async #addToSqlite(): Promise<void> {
    if (await this.hasColumn('activity', 'number')) return;
    await this.addColumns('activity', { number: 'bigint' });
    this.addSql('update activity set number = 0');
  }
}
