import { isConflict, isDamaged, isMisdirected, isOutage, isRefusal } from '../sql-errors.ts';

/** Why the database is unusable and what an operator can do; undefined for an error that an operator cannot resolve. */
export function describeFailure(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // MikroORM puts the statement in front of the message.
  const { sqlMessage, code, message, errcode } = error as Error & {
    sqlMessage?: string;
    code?: string;
    errcode?: number;
  };
  const reason = sqlMessage || message || code;
  if (isRefusal(error)) {
    return `the database refuses the connection (${reason}), waiting until it accepts one: DATABASE_URL must name its account, password and database, and the account must be allowed to create and change tables there`;
  }
  if (isMisdirected(error)) {
    return `the database cannot be written to (${reason}), waiting for it: DATABASE_URL must name a primary`;
  }
  if (isConflict(error)) {
    return `the tables are locked (${reason}), waiting for them: a dump or an open transaction blocks the migration`;
  }
  if (!isOutage(error) && !isDamaged(error)) return undefined;
  if (errcode !== undefined)
    return `the database cannot be used (${reason}), waiting for it: check database.sqlite in DATA_DIR`;
  return `the database does not answer (${reason}), waiting for it: check DATABASE_URL`;
}
