import { setTimeout as pause } from 'node:timers/promises';
import { isMutationRun } from './mutation-run.ts';

/** In a mutation run the service that is asked shares this thread, and must not spend it on answers. */
const EVERY_MS = isMutationRun ? 100 : 20;
/** With the service on one thread, and further ones beside it, all takes longer. */
const PATIENCE = isMutationRun ? 2 : 1;

/**
 * Waits for a condition, by asking again every `every` ms (20), and resolves to its first truthy value. A condition that
 * throws is one that does not hold yet; its last error is the cause of the Error that ends the wait after `within` ms.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  {
    within = 10_000,
    every = EVERY_MS,
    what = 'the condition',
  }: { within?: number; every?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const end = performance.now() + within * PATIENCE;
  let cause: unknown;
  do {
    try {
      const left = Math.max(end - performance.now(), 1);
      const value = await inTime(Promise.resolve(condition()), { within: left, what });
      if (value) return value;
    } catch (error) {
      cause = error;
    }
    await pause(every);
  } while (performance.now() < end);
  throw new Error(`${what}: not within ${within} ms`, { cause });
}

/** The promise's own outcome, or an Error that names `what` once `within` ms have passed. */
export function inTime<T>(promise: Promise<T>, { within, what }: { within: number; what: string }): Promise<T> {
  const { promise: expiry, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${what}: not within ${within} ms`)), within);
  return Promise.race([promise, expiry]).finally(() => clearTimeout(timer));
}
