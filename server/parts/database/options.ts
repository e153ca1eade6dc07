import { join } from 'node:path';
import { type Options, SqliteDriver } from '@mikro-orm/sql';
import { schemas } from '../../../entities/index.ts';
import { loadMigrations } from '../../../entities/migrations/index.ts';
import type { Config } from '../../config/index.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Limits } from './mysql-session.ts';

/** The table in which MikroORM records applied migrations. */
export const MIGRATIONS_TABLE = 'mikro_orm_migrations';

const common = {
  entities: schemas,
  /** Migrations are written by hand: the command line derives no changes from the entities. */
  schemaGenerator: { skipTables: [/.*/] },
  /** Opening sends nothing to the server, which may be down: `migrate` creates the database. */
  ensureDatabase: false,
  /** Writes use short-lived forks: a shared identity map would grow without limit. */
  allowGlobalContext: false,
} satisfies Options;

/** The file of the embedded database. */
export const sqliteFileIn = ({ dataDir }: Pick<Config, 'dataDir'>): string => join(dataDir, 'database.sqlite');

/**
 * MikroORM on MySQL or MariaDB if DATABASE_URL is set, else on a SQLite file in DATA_DIR. Loads only the driver in use.
 */
export async function databaseOptions(
  { databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>,
  { limits, log }: { limits?: Limits; log?: Log | undefined } = {},
): Promise<Options> {
  if (!databaseUrl) {
    const { sqliteDialect } = await import('./sqlite-dialect.ts');
    const file = sqliteFileIn({ dataDir });
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

/** The same with the migrations; a start on an up-to-date schema does not load their library. */
export async function migrationOptions(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<Options> {
  const [{ Migrator }, migrationsList] = await Promise.all([import('@mikro-orm/migrations'), loadMigrations()]);
  return {
    ...(await databaseOptions(config)),
    extensions: [Migrator],
    migrations: { migrationsList, tableName: MIGRATIONS_TABLE, snapshot: false, silent: true },
  };
}
