import { isRefusal } from './sql-errors.ts';

/** Redis's errors for a wrong password, a missing one, or a user without the right. */
const redisRefusal = /^(?:WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/;

/**
 * Whether an error, or its cause, says that a part was reached and refuses us: waiting does not help, an
 * operator has to change the credentials or the rights.
 */
export const isRefused = (error: unknown): boolean =>
  error instanceof Error && (isRefusal(error) || redisRefusal.test(error.message) || isRefused(error.cause));
