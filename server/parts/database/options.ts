import { join } from 'node:path';
import { type Options, SqliteDriver } from '@mikro-orm/sql';
import { schemas } from '../../../entities/index.ts';
import { loadMigrations } from '../../../entities/migrations/index.ts';
import type { Config } from '../../config/index.ts';
import type { Log } from '../../log.ts';
import type { Limits } from './mysql-connections.ts';

/** Where MikroORM writes the names of the migrations that were applied. */
export const MIGRATIONS_TABLE = 'mikro_orm_migrations';

const common = {
  entities: schemas,
  /** Migrations are written by hand: the command line derives no changes from the entities. */
  schemaGenerator: { skipTables: [/.*/] },
  /** Opening sends nothing to the server, which may not be up yet: `migrate` creates the database. */
  ensureDatabase: false,
  /** Writes use short-lived forks: a shared identity map would grow without limit. */
  allowGlobalContext: false,
} satisfies Options;

/** MikroORM on MySQL or MariaDB where DATABASE_URL names one, else on a SQLite file in DATA_DIR. Only the driver that is used is loaded. */
export async function databaseOptions(
  { databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>,
  { limits, log }: { limits?: Limits; log?: Log | undefined } = {},
): Promise<Options> {
  if (!databaseUrl) {
    const { sqliteDialect } = await import('./sqlite-dialect.ts');
    const file = join(dataDir, 'database.sqlite');
    return { ...common, driver: SqliteDriver, dbName: file, driverOptions: sqliteDialect(file) };
  }
  const [{ defineConfig, MySqlDriver }, { databaseName, mysqlDialect }] = await Promise.all([
    import('@mikro-orm/mysql'),
    import('./mysql-dialect.ts'),
  ]);
  return defineConfig({
    ...common,
    driver: MySqlDriver,
    dbName: databaseName(databaseUrl),
    timezone: 'Z',
    driverOptions: mysqlDialect(databaseUrl, { limits, decides: true, log }),
  }) as Options;
}

/** The same with the migrations, whose library a start on an up-to-date schema does not load. */
export async function migrationOptions(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<Options> {
  const [{ Migrator }, migrationsList] = await Promise.all([import('@mikro-orm/migrations'), loadMigrations()]);
  return {
    ...(await databaseOptions(config)),
    extensions: [Migrator],
    migrations: { migrationsList, tableName: MIGRATIONS_TABLE, snapshot: false, silent: true },
  };
}
