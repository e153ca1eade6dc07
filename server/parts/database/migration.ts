import { MikroORM } from '@mikro-orm/sql';
import type { Config } from '../../config/index.ts';
import { databaseOptions } from './options.ts';

const LOCK_SECONDS = 60;

/**
 * Applies the migrations that are missing and answers their names. On connections of its own, whose statements may take
 * as long as they need; one instance at a time.
 */
export async function migrate(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<string[]> {
  const orm = await MikroORM.init(await databaseOptions(config));
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
