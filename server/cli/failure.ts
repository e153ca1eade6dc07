import { ConfigError } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Database } from '../parts/database/contract.ts';
import { describeFailure } from '../parts/database/failure.ts';
import { isDamaged } from '../parts/sql-errors.ts';

/** A wrong use of a command. */
export class UsageError extends Error {}

/**
 * A failure of a command in words, or with its stack if no operator can resolve it. `usage` follows after wrong
 * arguments.
 */
export function explain(error: unknown, usage = ''): string {
  const { code = '', message, path, stack, cause } = error as NodeJS.ErrnoException & { cause?: unknown };
  if (error instanceof ConfigError || error instanceof UsageError || isDamaged(error)) return message;
  if (error instanceof ServiceError) return describeFailure(cause) ?? message;
  if (code.startsWith('ERR_PARSE_ARGS')) return `${message}\n${usage}`;
  return describeFailure(error) ?? (path === undefined ? (stack ?? String(error)) : message);
}

/** For commands that must not migrate the schema. */
export async function requireCurrentSchema(database: Database): Promise<void> {
  if ((await database.pendingMigrations()).length > 0) {
    throw new UsageError('The schema is not up to date: run `npm run migrate`');
  }
  await database.migrate();
}
