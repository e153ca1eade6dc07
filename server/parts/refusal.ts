import { isRefusal } from './sql-errors.ts';

/** What Redis says to a wrong password, a missing one, a user who may not. */
const redisRefusal = /^(?:WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/;

/**
 * Whether a part was reached and will not have us, by an error or what caused it: waiting mends nothing, an operator has to
 * change the credentials or the rights.
 */
export const isRefused = (error: unknown): boolean =>
  error instanceof Error && (isRefusal(error) || redisRefusal.test(error.message) || isRefused(error.cause));
