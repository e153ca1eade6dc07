import { MikroORM } from '@mikro-orm/sql';
import { Kysely, type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import { migrationNames } from '../../../entities/migrations/index.ts';
import type { Config } from '../../config/index.ts';
import { createReportLimit } from '../../lib/outage.ts';
import type { Log } from '../../telemetry/log.ts';
import { retryingConflicts } from '../deadline.ts';
import { isMissingSchema } from '../sql-errors.ts';
import { takeMigrationLock } from './migration-lock.ts';
import { MIGRATIONS_TABLE, migrationOptions } from './options.ts';

type DatabaseConfig = Pick<Config, 'databaseUrl' | 'dataDir'>;

/** How long migrations that conflict with other transactions are retried. */
const CONFLICTS_MS = 120_000;
/** Requests on a table wait behind its waiting change for at most a second; between two attempts they proceed. */
const BACKOFF_MS = { first: 500, longest: 2000 };

/** The names of the migrations not yet applied. A migration is recorded only when it is complete. */
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
 * Applies the missing migrations and resolves to their names, one instance at a time. Uses its own connections without
 * time limits for statements.
 */
export async function migrate(
  config: DatabaseConfig,
  { now, log }: { now: RawBuilder<number>; log?: Log | undefined },
): Promise<string[]> {
  if (config.databaseUrl) await createMissingDatabase(config.databaseUrl);
  const orm = await MikroORM.init(await migrationOptions(config));
  try {
    const applied = await (config.databaseUrl ? lockedMigration(orm, { now, log }) : orm.migrator.up());
    return applied.map(({ name }) => name);
  } finally {
    await orm.close(true);
  }
}

async function lockedMigration(orm: MikroORM, { now, log }: { now: RawBuilder<number>; log?: Log | undefined }) {
  const tables = orm.em.fork().getKysely();
  const isDone = async () => (await pendingMigrations(tables)).length === 0;
  const lock = await takeMigrationLock(tables, { now, isDone });
  if (!lock) return [];
  orm.migrator.on('migrating', () => lock.renew());
  const mayReport = createReportLimit();
  const failed = (error: Error) => {
    if (mayReport('conflict')) log?.warn({ err: error }, 'a migration waits for others that use its tables');
  };
  try {
    // Migrations may be repeated, for example after a crash.
    return await retryingConflicts(AbortSignal.timeout(CONFLICTS_MS), () => orm.migrator.up(), {
      ...BACKOFF_MS,
      failed,
    });
  } finally {
    await lock.release();
  }
}

async function createMissingDatabase(url: string): Promise<void> {
  const { databaseName, mysqlDialect } = await import('./mysql-dialect.ts');
  const server = new Kysely<object>({ dialect: mysqlDialect(url, { decides: true, serverOnly: true }) });
  const name = databaseName(url);
  try {
    // Checked first: an account with rights on its database only may not run `create database`.
    const { rows } = await sql`select 1 from information_schema.schemata where schema_name = ${name}`.execute(server);
    if (rows.length === 0) await sql`create database if not exists ${sql.id(name)}`.execute(server);
  } finally {
    await server.destroy();
  }
}
