import { unavailable } from '../../errors.ts';
import { isDuplicate } from '../sql-errors.ts';

/** Attempts when a concurrent transaction wins. */
const ATTEMPTS = 5;

/**
 * Retries a transaction that lost against a concurrent one: it finds a duplicate, or nothing to decide (undefined).
 * Rejects with SERVICE_UNAVAILABLE after the last attempt.
 */
export async function retryOnDuplicate<Result>(attempt: () => Promise<Result | undefined>): Promise<Result> {
  for (let attempts = 0; attempts < ATTEMPTS; attempts++) {
    const result = await attempt().catch(undefinedIfDuplicate);
    if (result !== undefined) return result;
  }
  throw unavailable(new Error('a concurrent transaction won each attempt'));
}

const undefinedIfDuplicate = (error: unknown): undefined => {
  if (!isDuplicate(error)) throw error;
};
