import type { Socket } from 'node:net';
import type { PoolConnection, QueryError, RowDataPacket } from 'mysql2';

/**
 * The settings that each connection sets before its first statement, whatever the server's defaults. Values are escaped
 * into statements: with NO_BACKSLASH_ESCAPES any of them could end its quotes.
 */

/** Longer than any statement takes. A connection silent for this long may be broken, or its server frozen. */
const SILENCE_MS = 5000;

export interface Limits {
  lockWaitSeconds: number;
  /**
   * The server then ends a silent session and its transaction: the locks of a host that was lost without a word. Longer
   * than SILENCE_MS, after which this side ends it.
   */
  lostAfterSeconds: number;
}

/** The purpose of a connection. */
export interface ConnectionUse {
  /** Undefined for migrations, which have no time limit. */
  limits?: Limits | undefined;
  /** Decisions depend on its reads: in a cluster each read sees what any node had committed before. */
  decides: boolean;
  /** Refuses a read-only server. */
  writes: boolean;
}

/** The semantics of statements. Each executable comment applies to one flavour. */
const meaning = `names utf8mb4 collate utf8mb4_unicode_ci, sql_mode = 'TRADITIONAL', autocommit = 1, completion_type = 0,
  time_zone = '+00:00', foreign_key_checks = 1, unique_checks = 1, sql_auto_is_null = 0, sql_safe_updates = 0,
  sql_select_limit = 18446744073709551615
  /*!50720 , transaction_isolation = 'READ-COMMITTED' */ /*M!100100 , tx_isolation = 'READ-COMMITTED' */`;

/**
 * After the deadline of its caller a statement soon ends in the database too: a read at its time limit, a write at its
 * lock wait limit (on MariaDB also at its time limit).
 */
const limited = ({
  lockWaitSeconds: seconds,
  lostAfterSeconds,
}: Limits) => `innodb_lock_wait_timeout = ${seconds}, lock_wait_timeout = ${seconds}, wait_timeout = ${lostAfterSeconds}
  /*!50720 , max_execution_time = 3500 */ /*M!100100 , max_statement_time = 3.5 */`;

/**
 * Every request on a table waits behind its waiting change. The change gives up after the server's minimum lock wait
 * and is retried.
 */
const unlimited = `lock_wait_timeout = 1 /*!50720 , max_execution_time = 0 */ /*M!100100 , max_statement_time = 0 */`;

/** Makes a new connection ready for statements. If it rejects, the connection must not be used. */
export async function beginSession(
  connection: PoolConnection,
  { limits, decides, writes }: ConnectionUse,
): Promise<void> {
  if (limits) {
    // A failover or a firewall may drop a connection silently. In the pool, its statements would wait for TCP's
    // timeout.
    const { stream } = connection as typeof connection & { stream: Socket };
    stream.setTimeout(SILENCE_MS, () => stream.destroy(new SilentConnection()));
  }
  await run(connection, `set ${meaning}, ${limits ? limited(limits) : unlimited}`);
  const variables = await describe(connection);
  if (!isAsSet(variables)) throw new UnknownSession();
  if (writes && isReadOnly(variables)) throw new ReadOnlyServer();
  const consistency = decides && consistencyOf(variables);
  if (consistency) await run(connection, `set session ${consistency}`);
}

/** The variables of MySQL, MariaDB and a reader of Aurora. */
const readOnly = ['read_only', 'super_read_only', 'innodb_read_only'];
const asSet = ['sql_mode', 'autocommit', 'character_set_client', 'character_set_results'];
const variableNames = [...readOnly, ...asSet, 'wsrep_on', 'group_replication_group_name'];

/** Judges the variables of a server. */
export const isReadOnly = (variables: ReadonlyMap<string, string>): boolean =>
  readOnly.some((name) => variables.get(name) === 'ON');

/** A proxy with its own sessions may answer instead of the server. */
function isAsSet(variables: ReadonlyMap<string, string>): boolean {
  const modes = variables.get('sql_mode')?.split(',') ?? [];
  return (
    modes.includes('TRADITIONAL') &&
    !modes.includes('NO_BACKSLASH_ESCAPES') &&
    variables.get('autocommit') === 'ON' &&
    ['character_set_client', 'character_set_results'].every((name) => variables.get(name) === 'utf8mb4')
  );
}

/** The settings of the session and the kind of server; no server has all of the variables. */
async function describe(connection: PoolConnection): Promise<Map<string, string>> {
  const names = variableNames.map((name) => `'${name}'`).join(', ');
  const rows = await run(connection, `show variables where variable_name in (${names})`);
  return new Map(rows.map(({ Variable_name, Value }) => [Variable_name, Value]));
}

/**
 * The setting with which a node waits, at reads outside transactions and at begins, until it has applied earlier
 * commits of its cluster. Undefined for a server without a cluster.
 */
function consistencyOf(variables: Map<string, string>): string | undefined {
  // 1: reads and begins. 2: updates and deletions, which might miss a row that another node has just inserted.
  if (variables.get('wsrep_on') === 'ON') return 'wsrep_sync_wait = 3';
  return variables.get('group_replication_group_name') ? "group_replication_consistency = 'BEFORE'" : undefined;
}

const run = (connection: PoolConnection, statement: string): Promise<RowDataPacket[]> =>
  new Promise((resolve, reject) => {
    connection.query<RowDataPacket[]>(statement, (error: QueryError | null, rows) =>
      error ? reject(error) : resolve(rows),
    );
  });

class ReadOnlyServer extends Error {
  readonly errno = 1836;
  readonly code = 'ER_READ_ONLY_MODE';

  constructor() {
    super('the server is read-only');
  }
}

class UnknownSession extends Error {
  readonly code = 'UNKNOWN_SESSION';

  constructor() {
    super('the settings of a session did not reach the server');
  }
}

class SilentConnection extends Error {
  readonly code = 'ETIMEDOUT';

  constructor() {
    super(`the database sent nothing for ${SILENCE_MS} ms`);
  }
}
