import { addressPerHost } from '../../config/values.ts';
import { pendingMigrations } from '../../parts/database/migration.ts';
import { isReadOnly } from '../../parts/database/mysql-session.ts';
import { MIGRATIONS_TABLE } from '../../parts/database/options.ts';
import { isMissingSchema } from '../../parts/sql-errors.ts';
import { hostRights, replicaRights, rightsFindings } from './database-rights.ts';
import { clusterOf, nameOf, type Query, type Server, serverFindings } from './database-server.ts';
import { examineServers } from './examination.ts';
import { type Check, type Finding, leastDifference, ok, problem, warning } from './finding.ts';

/** The maximum difference between the clocks of nodes: each uses its own for the end of a token or lease. */
const CLOCK_TOLERANCE_MS = 500;
/** A replica that lacks a row of this age is behind. */
const SETTLED_SECONDS = 10;

/** The facts by which servers are compared. */
interface Known extends Pick<Server, 'name' | 'clock'> {
  isWritable: boolean;
  cluster: string | undefined;
  /** When each migration was applied: equal in all copies of a database, and only there. */
  migrations: ReadonlyMap<string, string>;
  /** A user that every copy must have; undefined without users. */
  settledUser: string | undefined;
}

export const checkDatabase: Check = async function* ({ databaseUrl, databaseReplicaUrls, processes, dataDir }) {
  if (!databaseUrl) {
    yield ok(`embedded: SQLite in ${dataDir}`);
    return;
  }
  const known = new Map<string, Known>();
  const urls = addressPerHost(databaseUrl);
  yield* examineServers(
    urls.map((url) => [
      urls.length > 1 ? nameOf(url) : '',
      serverFindings({ url, variable: 'DATABASE_URL', processes }, async function* (server) {
        yield* hostFindings(server);
        known.set(url, await knownOf(server));
      }),
    ]),
  );
  const hosts = urls.flatMap((url) => known.get(url) ?? []);
  if (hosts.length > 0) yield writableFinding(hosts);
  if (hosts.length > 1) yield* comparison(hosts);

  const [source = hosts[0]] = hosts.filter(({ isWritable }) => isWritable);
  yield* examineServers(
    databaseReplicaUrls.map((url) => [
      `replica ${nameOf(url)}`,
      serverFindings({ url, variable: 'DATABASE_REPLICA_URLS', processes }, (server) =>
        replicaFindings(server, source),
      ),
    ]),
  );
};

async function knownOf({ name, clock, facts, query }: Server): Promise<Known> {
  return {
    name,
    clock,
    isWritable: !isReadOnly(facts),
    cluster: clusterOf(facts),
    migrations: await migrationsIn(query),
    settledUser: await settledUserIn(query),
  };
}

const emptyIfMissing = (error: unknown): [] => {
  if (isMissingSchema(error)) return [];
  throw error;
};

async function migrationsIn(query: Query): Promise<Known['migrations']> {
  const rows = await query<{ name: string; time: string }>(
    `select name, cast(executed_at as char) as time from ${MIGRATIONS_TABLE}`,
  ).catch(emptyIfMissing);
  return new Map(rows.map(({ name, time }) => [name, time]));
}

async function settledUserIn(query: Query): Promise<string | undefined> {
  const [user] = await query<{ id: string }>(
    `select id from users where created_at < (unix_timestamp() - ${SETTLED_SECONDS}) * 1000 order by id desc limit 1`,
  ).catch(emptyIfMissing);
  return user?.id;
}

async function* hostFindings({ query, facts, tables }: Server): AsyncGenerator<Finding> {
  if (facts.get('innodb_flush_log_at_trx_commit') !== '1') {
    yield warning('a power cut may lose committed changes', 'set innodb_flush_log_at_trx_commit = 1');
  }
  yield* await rightsFindings(query, hostRights);
  yield* characterSetFindings(query);
  const pending = await pendingMigrations(tables);
  yield pending.length === 0
    ? ok('its schema is up to date')
    : warning(`migrations are missing: ${pending.join(', ')}`, '`npm run migrate` applies them, or the next start');
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
      `its character set is ${schema.charset}: it cannot store all text`,
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

function writableFinding(hosts: Known[]): Finding {
  const names = hosts.filter(({ isWritable }) => isWritable).map(({ name }) => name);
  return names.length > 0
    ? ok(`it can be written to at ${names.join(', ')}`)
    : problem('it cannot be written to (read_only)', 'DATABASE_URL must name the primary, not a replica');
}

/** Compares the hosts of DATABASE_URL. The service may use each of them. */
function* comparison(hosts: Known[]): Generator<Finding> {
  const [first, ...others] = hosts as [Known, ...Known[]];
  const strangers = others.filter((host) => !isCopy(host, first)).map(({ name }) => name);
  if (strangers.length > 0) {
    yield problem(
      `${strangers.join(', ')} has another database than ${first.name}`,
      'DATABASE_URL must name nodes of one cluster, or one primary and its replicas',
    );
  }
  yield clusterFinding(hosts);
  const apart = hosts.flatMap((one, i) =>
    hosts
      .slice(i + 1)
      .filter((other) => leastDifference(one.clock, other.clock) > CLOCK_TOLERANCE_MS)
      .map((other) => `${one.name} and ${other.name}`),
  );
  yield apart.length > 0
    ? problem(
        `more than half a second is between the clocks of ${apart.join(', ')}`,
        'synchronize them with NTP (Debian: chrony): the end of a token is judged by the node that is asked',
      )
    : ok('their clocks agree');
}

function clusterFinding(hosts: Known[]): Finding {
  const clusters = new Set(hosts.map(({ cluster }) => cluster));
  if (clusters.size === 1 && !clusters.has(undefined)) return ok('they are nodes of one cluster');
  const writable = hosts.filter(({ isWritable }) => isWritable);
  if (writable.length > 1) {
    return problem(
      `${writable.map(({ name }) => name).join(', ')} are written to each by itself: they are not nodes of one cluster`,
      'make them one (Galera, InnoDB Cluster), or all but one of them its replicas with read_only',
    );
  }
  return warning(
    'they are not nodes of one cluster: a failover loses what the next primary has not received yet',
    'use Galera or InnoDB Cluster, or semi-synchronous replication',
  );
}

/** True if the migrations that both have are the same ones; a copy may still lack the last. */
const isCopy = (copy: Pick<Known, 'migrations'>, { migrations }: Known): boolean =>
  [...copy.migrations].every(([name, time]) => (migrations.get(name) ?? time) === time);

/** `source` is a host of DATABASE_URL that responded, if any. */
async function* replicaFindings({ query, tables }: Server, source: Known | undefined): AsyncGenerator<Finding> {
  yield* await rightsFindings(query, replicaRights);
  const pending = await pendingMigrations(tables);
  const migrations = await migrationsIn(query);
  if (source && !isCopy({ migrations }, source)) {
    yield problem('it is a copy of another database', 'DATABASE_REPLICA_URLS must name replicas of DATABASE_URL');
    return;
  }
  yield pending.length === 0
    ? ok('its schema is up to date')
    : warning(
        `migrations have not arrived: ${pending.join(', ')}`,
        'see that it replicates the database of DATABASE_URL',
      );
  const replication = await replicationFinding(query);
  if (replication) yield replication;
  if (source?.settledUser !== undefined && pending.length === 0) {
    yield (await query(`select id from users where id = '${source.settledUser}'`)).length > 0
      ? ok(`it has what is older than ${SETTLED_SECONDS} seconds`)
      : problem(
          `it is more than ${SETTLED_SECONDS} seconds behind: it lacks a user`,
          'see that it replicates the database of DATABASE_URL, and that nothing on it holds that up',
        );
  }
}

/** The server's own status, which only some accounts may read; undefined without it. */
async function replicationFinding(query: Query): Promise<Finding | undefined> {
  const [status] = await query<Record<string, string | number | null>>('show replica status').catch(() => []);
  if (!status) return undefined;
  // MySQL says Source and Replica, MariaDB says Master and Slave.
  const value = (ending: string) => Object.entries(status).find(([name]) => name.endsWith(ending))?.[1];
  const seconds = value('Seconds_Behind_Source') ?? value('Seconds_Behind_Master');
  if (seconds == null) {
    // Only the number: its message quotes rows.
    return problem(
      `its replication stands (errors ${value('Last_IO_Errno')} and ${value('Last_SQL_Errno')})`,
      'SHOW REPLICA STATUS there says why; then START REPLICA',
    );
  }
  const text = `it is ${seconds} s behind`;
  return Number(seconds) > SETTLED_SECONDS
    ? warning(text, 'see what holds it up: public reads show what was true then')
    : ok(text);
}
