import { Kysely, sql } from 'kysely';
import { sslModeOf } from '../../config/values.ts';
import { describeFailure } from '../../parts/database/failure.ts';
import { mysqlDialect } from '../../parts/database/mysql-dialect.ts';
import { CONNECTIONS } from '../../parts/database/row-queue.ts';
import type { Tables } from '../../parts/database/tables.ts';
import { isLoopback } from '../../shared/loopback.ts';
import { sentenceOf } from '../../telemetry/log.ts';
import { type ClockReading, clockFinding, type Finding, isAboutTls, ok, problem, warning } from './finding.ts';

/** The first versions with SKIP LOCKED. */
const OLDEST = { MySQL: [8, 0], MariaDB: [10, 6] };

export type Query = <Row extends object>(statement: string) => Promise<Row[]>;

/** A server to check: a URL with one host, and its use. */
export interface Address {
  url: string;
  variable: 'DATABASE_URL' | 'DATABASE_REPLICA_URLS';
  /** The number of processes on this machine that connect to it. */
  processes: number;
}

/** A server that responds and, as a node of a cluster, works. */
export interface Server {
  name: string;
  tables: Kysely<Tables>;
  query: Query;
  /** Its variables and counters, by name. */
  facts: ReadonlyMap<string, string>;
  clock: ClockReading;
}

export function nameOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 3306}`;
}

/** The checks of every server, then those of its kind. */
export async function* serverFindings(
  address: Address,
  further: (server: Server) => AsyncIterable<Finding>,
): AsyncGenerator<Finding> {
  const tables = new Kysely<Tables>({ dialect: mysqlDialect(address.url, { decides: false }) });
  const query: Query = async <Row>(statement: string) => (await sql.raw<Row>(statement).execute(tables)).rows;
  try {
    // A node that its cluster has excluded answers only these.
    const facts = new Map([...(await named(query, 'show variables')), ...(await named(query, 'show status'))]);
    yield versionFinding(facts.get('version') ?? '');
    yield encryptionFinding(address, facts);
    const node = await nodeFinding(query, facts);
    if (node) yield node;
    if (node?.level === 'problem') return;
    const clock = await readClock(query);
    yield clockFinding(clock);
    yield connectionsFinding(address, facts);
    yield await settingsFinding(query);
    yield* further({ name: nameOf(address.url), tables, query, facts, clock });
  } catch (error) {
    yield failureFinding(address, error);
  } finally {
    await tables.destroy().catch(() => undefined);
  }
}

const named = async (query: Query, statement: string) =>
  (await query<{ Variable_name: string; Value: string }>(statement)).map(
    ({ Variable_name, Value }) => [Variable_name.toLowerCase(), Value] as const,
  );

/** `version` as the server states it. */
export function versionFinding(version: string): Finding {
  if (version.includes('TiDB')) {
    return problem(
      `${version} takes SKIP LOCKED and locks nothing: several instances would work on the same mails and uploads`,
      'use MySQL, MariaDB, or a cluster of one of them',
    );
  }
  const flavour = version.includes('MariaDB') ? 'MariaDB' : 'MySQL';
  const [major = 0, minor = 0] = version.split('.').map((number) => Number.parseInt(number, 10));
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST[flavour];
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  return isOld
    ? problem(`${flavour} ${version} is too old`, `use ${flavour} ${OLDEST[flavour].join('.')} or later`)
    : ok(`${flavour} ${version} answers`);
}

function encryptionFinding({ url, variable }: Address, facts: Server['facts']): Finding {
  const cipher = facts.get('ssl_cipher');
  const remedy = `add ?ssl-mode=VERIFY_IDENTITY to ${variable}, and its authority to CA_FILE`;
  if (sslModeOf(url) === 'REQUIRED') {
    return warning('any server could impersonate it: ssl-mode=REQUIRED checks no certificate', remedy);
  }
  if (cipher) return ok(`the connection is encrypted (${cipher})`);
  return isLoopback(new URL(url).hostname)
    ? ok('the connection stays on this machine')
    : warning('the connection is not encrypted', remedy);
}

/** Undefined for a standalone server. A problem means that it can do nothing. */
async function nodeFinding(query: Query, facts: Server['facts']): Promise<Finding | undefined> {
  if (facts.get('wsrep_on') === 'ON') return galeraFinding(facts);
  return facts.get('group_replication_group_name') ? groupFinding(query) : undefined;
}

/** The same for all nodes of a cluster. */
export const clusterOf = (facts: Server['facts']): string | undefined =>
  (facts.get('wsrep_on') === 'ON' && facts.get('wsrep_cluster_state_uuid')) ||
  facts.get('group_replication_group_name') ||
  undefined;

function galeraFinding(facts: Server['facts']): Finding {
  const state = facts.get('wsrep_local_state_comment');
  const component = facts.get('wsrep_cluster_status');
  if (facts.get('wsrep_ready') !== 'ON' || component !== 'Primary') {
    return problem(
      `this node of Galera does not serve (${state}, ${component})`,
      'let it join the majority again; without a majority: galera_new_cluster on the node with the last write',
    );
  }
  if (state !== 'Synced')
    return warning(`this node of Galera is behind (${state})`, 'wait, or see its log for the reason');
  return sizeFinding('Galera', Number(facts.get('wsrep_cluster_size')));
}

async function groupFinding(query: Query): Promise<Finding> {
  const members = await query<{ state: string; isThis: number }>(
    `select member_state as state, member_id = @@server_uuid as isThis from performance_schema.replication_group_members`,
  ).catch(() => undefined);
  if (!members) {
    return warning(
      'it is a member of a replication group, but its account cannot read the group state',
      'GRANT SELECT ON performance_schema.replication_group_members to that account',
    );
  }
  const state = members.find(({ isThis }) => Number(isThis) === 1)?.state ?? 'OFFLINE';
  if (state !== 'ONLINE') {
    return problem(
      `this member of its replication group is ${state}`,
      'START GROUP_REPLICATION there; see its log for the reason',
    );
  }
  const online = members.filter((member) => member.state === 'ONLINE').length;
  return online * 2 > members.length
    ? sizeFinding('its replication group', online)
    : problem(
        `this member reaches ${online - 1} of the ${members.length - 1} others of its replication group, and accepts no writes`,
        'restart a majority of them',
      );
}

const sizeFinding = (what: string, size: number): Finding =>
  size < 3
    ? warning(
        `${what} has fewer than three nodes (${size}): without one of them it stops`,
        'run three; with Galera one may be garbd',
      )
    : ok(`${what} has ${size} nodes, this one is in step`);

async function readClock(query: Query): Promise<ClockReading> {
  const asked = Date.now();
  const [row] = await query<{ time: string }>('select unix_timestamp(now(3)) * 1000 as time');
  return { theirs: Number(row?.time), asked, answered: Date.now() };
}

function connectionsFinding({ processes }: Address, facts: Server['facts']): Finding {
  // 0: the account has no limit of its own.
  const limits = ['max_connections', 'max_user_connections'].map((name) => Number(facts.get(name)) || Infinity);
  const limit = Math.min(...limits);
  const wanted = processes * CONNECTIONS;
  return wanted > limit
    ? problem(
        `it accepts ${limit} connections, but the processes of this machine may need ${wanted}`,
        `set max_connections (and MAX_USER_CONNECTIONS of the account) to ${CONNECTIONS} for each process of all machines`,
      )
    : ok(`it accepts ${limit} connections; the processes of this machine may need ${wanted}`);
}

/** The server's own settings, which affect other programs: each connection of the service sets its own. */
async function settingsFinding(query: Query): Promise<Finding> {
  const own = new Map(
    await named(query, "show global variables where variable_name in ('sql_mode', 'init_connect', 'autocommit')"),
  );
  const modes = own.get('sql_mode')?.split(',') ?? [];
  const unsafe = [
    ...(modes.some((mode) => mode.startsWith('STRICT_')) ? [] : ['sql_mode without a strict mode']),
    ...['NO_BACKSLASH_ESCAPES', 'ANSI_QUOTES'].filter((mode) => modes.includes(mode)).map((mode) => `sql_mode ${mode}`),
    ...(own.get('init_connect') ? ['init_connect'] : []),
    ...(own.get('autocommit') === 'OFF' ? ['autocommit=OFF'] : []),
  ];
  return unsafe.length === 0
    ? ok('each connection has its own sql_mode, character set, isolation and time zone')
    : warning(
        `its own settings (${unsafe.join(', ')}) do not apply here: each connection sets its own`,
        'they affect other programs: remove them from its configuration, unless one needs them',
      );
}

function failureFinding({ variable }: Address, error: unknown): Finding {
  const reason = describeFailure(error)?.replace(/, waiting for .*/s, '');
  if (reason === undefined) throw error;
  if (isAboutTls(sentenceOf(error))) {
    return problem(
      reason,
      `CA_FILE must have the authority of its certificate, and ${variable} the name that it is for`,
    );
  }
  return problem(
    reason,
    (error as { errno?: number }).errno === 1049
      ? 'create it (CREATE DATABASE … CHARACTER SET utf8mb4), or run `npm run migrate` with an account that may create it'
      : `${variable} must name a running server and an account of it, with its password`,
  );
}
