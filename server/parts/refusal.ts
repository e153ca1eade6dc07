import { isRefusal } from './sql-errors.ts';

/** Redis's errors for a wrong or missing password, or a user without the right. */
const redisRefusal = /^(?:WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/;

/**
 * True if an error, or its cause, says that a part refuses the service. Waiting does not help: an operator must change
 * credentials or rights.
 */
export const isRefused = (error: unknown): boolean =>
  error instanceof Error && (isRefusal(error) || redisRefusal.test(error.message) || isRefused(error.cause));

/** Redis's errors for failed snapshots, full memory, too few replicas. */
const redisReadOnly = /^(?:MISCONF|OOM|NOREPLICAS)/;

/** True if an error, or its cause, says that a part accepts no writes now. */
export const isReadOnly = (error: unknown): boolean => causeMatches(error, redisReadOnly);

/**
 * True if an error, or its cause, says that the server is a replica: the service reconnects, to the master if there is
 * one.
 */
export const isReplica = (error: unknown): boolean => causeMatches(error, /^READONLY/);

const causeMatches = (error: unknown, pattern: RegExp): boolean =>
  error instanceof Error && (pattern.test(error.message) || causeMatches(error.cause, pattern));
