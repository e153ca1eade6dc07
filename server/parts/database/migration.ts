import { MikroORM } from '@mikro-orm/sql';
import { type Kysely, sql } from 'kysely';
import { migrationNames } from '../../../entities/migrations/index.ts';
import type { Config } from '../../config/index.ts';
import { isOutage, isRefusal } from '../sql-errors.ts';
import { MIGRATIONS_TABLE, migrationOptions } from './options.ts';
import type { Tables } from './tables.ts';

const LOCK_SECONDS = 60;

/**
 * Whether every migration was applied: one is listed only once it is complete. False also where the answer is an error that
 * `migrate` may resolve, such as a missing database; rejects where the database does not answer.
 */
export async function isUpToDate(tables: Kysely<Tables>): Promise<boolean> {
  try {
    const { rows } = await sql<{ name: string }>`select name from ${sql.table(MIGRATIONS_TABLE)}`.execute(tables);
    const applied = new Set(rows.map(({ name }) => name));
    return migrationNames.every((name) => applied.has(name));
  } catch (error) {
    if (isOutage(error) && !isRefusal(error)) throw error;
    return false;
  }
}

/**
 * Applies the migrations that are missing and answers their names. On connections of its own, whose statements may take
 * as long as they need; one instance at a time.
 */
export async function migrate(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<string[]> {
  const orm = await MikroORM.init(await migrationOptions(config));
  try {
    const applied = await (config.databaseUrl ? lockedMigration(orm) : orm.migrator.up());
    return applied.map(({ name }) => name);
  } finally {
    await orm.close(true);
  }
}

async function lockedMigration(orm: MikroORM) {
  await orm.schema.ensureDatabase();
  return orm.em.fork().transactional(async (em) => {
    const [row] = await em.execute<{ held: number }[]>(
      'select get_lock(concat(database(), ".migrations"), ?) as held',
      [LOCK_SECONDS],
    );
    if (row?.held !== 1) throw new Error('another instance holds the migration lock');
    try {
      return await orm.migrator.up();
    } finally {
      await em.execute('select release_lock(concat(database(), ".migrations"))');
    }
  });
}
