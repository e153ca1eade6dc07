/** Codes of Node, mysql2 and this service: the connection failed, not the statement. */
const connectionCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_SEQUENCE_TIMEOUT',
  'UNKNOWN_SESSION',
]);

/**
 * MySQL: too many connections, shutting down, killed, disk or table full, crashed engine, statement timeout (1969 is
 * MariaDB's).
 */
const mysqlOutages = new Set([
  3, 1021, 1026, 1030, 1040, 1053, 1077, 1114, 1152, 1158, 1159, 1160, 1161, 1180, 1203, 1317, 1927, 1969, 3024, 4031,
]);

/**
 * MySQL: read-only (1290, 1836; 1792 if the begin already was), not part of the cluster's majority (1047 from Galera,
 * 3100 from InnoDB Cluster).
 */
const mysqlMisdirected = new Set([1047, 1290, 1792, 1836, 3100]);

/**
 * MySQL: access denied to server or database (with and without a password), no such database, host blocked or not
 * allowed, statement denied, password expired, account locked (4151 is MariaDB's), TLS required.
 */
const mysqlRefusals = new Set([
  1044, 1045, 1049, 1129, 1130, 1142, 1143, 1227, 1251, 1698, 1820, 1862, 3118, 3159, 4151,
]);

/** MySQL: no such database, no such table. SQLite has one code for all mistakes. */
const mysqlMissing = new Set([1049, 1146]);
const sqliteMissing = /no such table/;

const MYSQL_DUPLICATE = 1062;
/** SQLite, by extended result code: a unique key, a primary key. */
const sqliteDuplicates = new Set([2067, 1555]);

/**
 * MySQL: lock wait timeout; deadlock, or with Galera a conflict with another node; a conflict with another node of an
 * InnoDB Cluster; TiDB's conflicts.
 */
const mysqlConflicts = new Set([1205, 1213, 3101, 8002, 8022, 8028, 9007]);

/** SQLite, by primary result code: busy, locked. */
const sqliteConflicts = new Set([5, 6]);

/** SQLite: read-only, I/O error, full, cannot open. */
const sqliteOutages = new Set([8, 10, 13, 14]);

/** SQLite: malformed, no database. */
const sqliteDamages = new Set([11, 26]);

interface DriverError {
  code?: unknown;
  errno?: unknown;
  errcode?: unknown;
  fatal?: unknown;
}

/** An error's own numbers. Kysely rejects with the driver's error, MikroORM with a copy of it. */
const numbersOf = (error: Error) => {
  const { code, errno, errcode, fatal } = error as Error & DriverError;
  const sqliteExtended = Number(errcode);
  return {
    code: String(code),
    mysql: Number(errno),
    sqlite: sqliteExtended & 0xff,
    sqliteExtended,
    fatal: fatal === true,
  };
};

/** True if a unique key refused a write. */
export function isDuplicate(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { mysql, sqliteExtended } = numbersOf(error);
  return mysql === MYSQL_DUPLICATE || sqliteDuplicates.has(sqliteExtended);
}

/** True if the statement needs a migration that is not applied yet. */
export const isMissingSchema = (error: unknown): boolean =>
  error instanceof Error && (mysqlMissing.has(numbersOf(error).mysql) || sqliteMissing.test(error.message));

/** True if the statement conflicted with another transaction: a retry may succeed. */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { mysql, sqlite } = numbersOf(error);
  return mysqlConflicts.has(mysql) || sqliteConflicts.has(sqlite);
}

/**
 * True if a cluster node refused the statement, and with it the transaction: a new connection may reach a node that
 * accepts it.
 */
export const isMisdirected = (error: unknown): boolean =>
  error instanceof Error && mysqlMisdirected.has(numbersOf(error).mysql);

/** True if the connection failed: the effect of its last statement is unknown. */
export function isLostConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, fatal } = numbersOf(error);
  return fatal || connectionCodes.has(code);
}

/** True if the database refuses the service: an operator must change something. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof Error && mysqlRefusals.has(numbersOf(error).mysql);

/** True if the file of an embedded part is damaged: an operator must replace it. */
export const isDamaged = (error: unknown): error is Error =>
  error instanceof Error && sqliteDamages.has(numbersOf(error).sqlite);

/** True if the database cannot work now; false if a statement is wrong. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { mysql, sqlite } = numbersOf(error);
  if (mysqlOutages.has(mysql) || sqliteOutages.has(sqlite)) return true;
  if (isLostConnection(error) || isRefusal(error) || isConflict(error) || isMisdirected(error)) return true;
  return /queue limit reached|connection is in closed state|pool is closed|database is not open/i.test(error.message);
}
