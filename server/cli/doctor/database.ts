import { MikroORM } from '@mikro-orm/sql';
import { describeFailure } from '../../parts/database/failure.ts';
import { pendingMigrations } from '../../parts/database/migration.ts';
import { databaseOptions } from '../../parts/database/options.ts';
import type { Tables } from '../../parts/database/tables.ts';
import { type Check, clockFinding, type Finding, ok, problem, warning } from './finding.ts';

/** The first with SKIP LOCKED. */
const OLDEST = { MySQL: [8, 0], MariaDB: [10, 6] };

/** What the service does, and what its migrations do. */
const SERVICE_RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const MIGRATION_RIGHTS = ['CREATE', 'ALTER', 'INDEX', 'REFERENCES', 'DROP'];

type Query = <Row extends object>(sql: string) => Promise<Row[]>;

export const checkDatabase: Check = async function* (config) {
  if (!config.databaseUrl) {
    yield ok(`embedded: SQLite in ${config.dataDir}`);
    return;
  }
  const orm = new MikroORM(await databaseOptions(config));
  try {
    const query: Query = (sql) => orm.em.getConnection().execute(sql);
    yield* serverFindings(query);
    yield* await rightsFindings(query);
    yield* characterSetFindings(query);
    yield await schemaFinding(orm);
  } catch (error) {
    const reason = describeFailure(error);
    if (reason === undefined) throw error;
    const isMissing = (error as { errno?: number }).errno === 1049;
    yield problem(
      reason.replace(/, waiting for .*/s, ''),
      isMissing
        ? 'create it (CREATE DATABASE … CHARACTER SET utf8mb4), or let `npm run migrate` do so with an account that may'
        : 'DATABASE_URL must name a running server and an account of it, with its password',
    );
  } finally {
    await orm.close(true).catch(() => undefined);
  }
};

async function* serverFindings(query: Query): AsyncGenerator<Finding> {
  const asked = Date.now();
  const [server] = await query<{ version: string; time: number; readOnly: number; flush: number }>(
    `select version() as version, unix_timestamp(now(3)) * 1000 as time, @@global.read_only as readOnly,
      @@global.innodb_flush_log_at_trx_commit as flush`,
  );
  if (!server) throw new Error('the database answered nothing');
  const answered = Date.now();
  const flavour = server.version.includes('MariaDB') ? 'MariaDB' : 'MySQL';
  const [major = 0, minor = 0] = server.version.split('.').map((number) => Number.parseInt(number, 10));
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST[flavour];
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  yield isOld
    ? problem(`${flavour} ${server.version} is too old`, `use ${flavour} ${OLDEST[flavour].join('.')} or later`)
    : ok(`${flavour} ${server.version} answers`);
  yield clockFinding({ theirs: Number(server.time), asked, answered });
  if (Number(server.readOnly) !== 0) {
    yield problem('it cannot be written to (read_only)', 'DATABASE_URL must name the primary, not a replica');
  }
  if (Number(server.flush) !== 1) {
    yield warning('a power cut loses what was just committed', 'set innodb_flush_log_at_trx_commit = 1');
  }
}

async function* characterSetFindings(query: Query): AsyncGenerator<Finding> {
  const [schema] = await query<{ name: string; charset: string; collation: string }>(
    `select schema_name as name, default_character_set_name as charset, default_collation_name as collation
      from information_schema.schemata where schema_name = database()`,
  );
  const columns = await query<{ name: string }>(
    `select concat(table_name, '.', column_name) as name from information_schema.columns
      where table_schema = database() and character_set_name not in ('utf8mb4', 'ascii') order by name`,
  );
  if (schema && schema.charset !== 'utf8mb4') {
    yield problem(
      `its character set is ${schema.charset}: it cannot store every text`,
      `ALTER DATABASE \`${schema.name}\` CHARACTER SET utf8mb4, before the first start`,
    );
  } else if (columns.length === 0) yield ok(`its texts are utf8mb4, its collation is ${schema?.collation}`);
  if (columns.length > 0) {
    yield problem(
      `columns that cannot store every text: ${columns.map(({ name }) => name).join(', ')}`,
      'convert them: ALTER TABLE … MODIFY … CHARACTER SET utf8mb4',
    );
  }
}

async function rightsFindings(query: Query): Promise<Finding[]> {
  const [account] = await query<{ name: string; database: string }>(
    'select current_user() as name, database() as `database`',
  );
  const grants = (await query<object>('show grants')).map((row) => String(Object.values(row)[0]));
  const isGranted = rightsIn(grants, account?.database ?? '');
  const lacking = (rights: string[]) => rights.filter((right) => !isGranted(right));
  const [forService, forMigrations] = [lacking(SERVICE_RIGHTS), lacking(MIGRATION_RIGHTS)];
  if (forService.length + forMigrations.length === 0) return [ok('its account may do what service and migrations do')];
  // A grant without ON is a role, whose rights this server does not list here.
  if (grants.some((grant) => !/ ON /.test(grant))) {
    return [
      warning(
        'its account has rights by a role, which are not listed',
        'see that the role is the default: SET DEFAULT ROLE',
      ),
    ];
  }
  const remedy = (rights: string[]) => `GRANT ${rights.join(', ')} ON \`${account?.database}\`.* TO ${account?.name}`;
  return [
    ...(forService.length > 0 ? [problem(`its account may not ${forService.join(', ')}`, remedy(forService))] : []),
    ...(forMigrations.length > 0
      ? [
          problem(
            `its account may not ${forMigrations.join(', ')}, which migrations need`,
            `${remedy(forMigrations)}, or run \`npm run migrate\` with an account that has them before each upgrade`,
          ),
        ]
      : []),
  ];
}

/** Of all `GRANT … ON scope TO …` that hold for the whole database. */
function rightsIn(grants: string[], database: string): (right: string) => boolean {
  const rights = grants.flatMap((grant) => {
    const [, list = '', scope = ''] = /^GRANT (.+?) ON (\S+) TO /i.exec(grant) ?? [];
    return isScopeOf(scope, database) ? list.toUpperCase().split(', ') : [];
  });
  return (right) => rights.includes(right) || rights.includes('ALL PRIVILEGES') || rights.includes('ALL');
}

/** Names in grants are patterns: `_` and `%`, unless there is a backslash before them. */
function isScopeOf(scope: string, database: string): boolean {
  if (scope === '*.*') return true;
  const name = /^[`"](.+)[`"]\.\*$/.exec(scope)?.[1];
  if (name === undefined) return false;
  const pattern = name.replace(/\\([_%])|[_%]|[.*+?^${}()|[\]\\]/g, (found, escaped?: string) => {
    if (escaped) return escaped;
    if (found === '_') return '.';
    return found === '%' ? '.*' : `\\${found}`;
  });
  return new RegExp(`^${pattern}$`, 'i').test(database);
}

async function schemaFinding(orm: MikroORM): Promise<Finding> {
  const pending = await pendingMigrations(orm.em.fork().getKysely<Tables>());
  return pending.length === 0
    ? ok('its schema is up to date')
    : warning(`migrations are missing: ${pending.join(', ')}`, '`npm run migrate` applies them, or the next start');
}
