/** Codes of Node and mysql2: the connection, not the statement, is at fault. */
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
]);

/** MySQL: too many connections, shutting down, killed, disk or table full, read-only, crashed engine, bad credentials. */
const mysqlOutages = new Set([
  3, 1021, 1026, 1030, 1040, 1044, 1045, 1049, 1053, 1077, 1114, 1152, 1158, 1159, 1160, 1161, 1180, 1203, 1290, 1317,
  1836, 1927, 3024, 4031,
]);

/** SQLite: busy, locked, read-only, I/O error, full, cannot open. */
const sqliteOutages = new Set([5, 6, 8, 10, 13, 14]);

interface DriverError {
  code?: unknown;
  errno?: unknown;
  errcode?: unknown;
  fatal?: unknown;
}

/** Whether an error says that the database cannot work now, rather than that a statement is wrong. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errno, errcode, fatal } = error as Error & DriverError;
  if (fatal === true || connectionCodes.has(String(code)) || mysqlOutages.has(Number(errno))) return true;
  if (sqliteOutages.has(Number(errcode) & 0xff)) return true;
  return /queue limit reached|connection is in closed state|pool is closed|database is not open/i.test(error.message);
}
