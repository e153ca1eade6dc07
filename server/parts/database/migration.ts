import { MikroORM } from '@mikro-orm/sql';
import { Kysely, type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import { migrationNames } from '../../../entities/migrations/index.ts';
import type { Config } from '../../config/index.ts';
import { retryingConflicts } from '../deadline.ts';
import { isMissingSchema } from '../sql-errors.ts';
import { takeMigrationLock } from './migration-lock.ts';
import { MIGRATIONS_TABLE, migrationOptions } from './options.ts';

type DatabaseConfig = Pick<Config, 'databaseUrl' | 'dataDir'>;

/** How long migrations are tried again that conflict with the instances that are at work. */
const CONFLICTS_MS = 60_000;

/** The names of the migrations that were not applied: one is listed only once it is complete. */
export async function pendingMigrations(tables: QueryExecutorProvider): Promise<string[]> {
  try {
    const { rows } = await sql<{ name: string }>`select name from ${sql.table(MIGRATIONS_TABLE)}`.execute(tables);
    const applied = new Set(rows.map(({ name }) => name));
    return migrationNames.filter((name) => !applied.has(name));
  } catch (error) {
    if (!isMissingSchema(error)) throw error;
    return [...migrationNames];
  }
}

/**
 * Applies the migrations that are missing and answers their names. On connections of its own, whose statements may take
 * as long as they need; one instance at a time.
 */
export async function migrate(config: DatabaseConfig, now: RawBuilder<number>): Promise<string[]> {
  if (config.databaseUrl) await createMissingDatabase(config.databaseUrl);
  const orm = await MikroORM.init(await migrationOptions(config));
  try {
    const applied = await (config.databaseUrl ? lockedMigration(orm, now) : orm.migrator.up());
    return applied.map(({ name }) => name);
  } finally {
    await orm.close(true);
  }
}

async function lockedMigration(orm: MikroORM, now: RawBuilder<number>) {
  const tables = orm.em.fork().getKysely();
  const isDone = async () => (await pendingMigrations(tables)).length === 0;
  const lock = await takeMigrationLock(tables, { now, isDone });
  if (!lock) return [];
  orm.migrator.on('migrating', () => lock.renew());
  try {
    // A migration may be repeated, as after a crash.
    return await retryingConflicts(AbortSignal.timeout(CONFLICTS_MS), () => orm.migrator.up());
  } finally {
    await lock.release();
  }
}

async function createMissingDatabase(url: string): Promise<void> {
  const { databaseName, mysqlDialect } = await import('./mysql-dialect.ts');
  const server = new Kysely<object>({ dialect: mysqlDialect(url, { decides: true, serverOnly: true }) });
  const name = databaseName(url);
  try {
    // Asked for first: an account that may use its database only may not say `create`.
    const { rows } = await sql`select 1 from information_schema.schemata where schema_name = ${name}`.execute(server);
    if (rows.length === 0) await sql`create database if not exists ${sql.id(name)}`.execute(server);
  } finally {
    await server.destroy();
  }
}
