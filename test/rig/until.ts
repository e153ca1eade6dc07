import { setTimeout as pause } from 'node:timers/promises';
import { isMutationRun } from './mutation-run.ts';

/** In a mutation run the polled service shares this thread, and must not spend its time on answers. */
const EVERY_MS = isMutationRun ? 50 : 20;
/** Longer in CI, whose machine may have other work. Shorter in a mutation run, where many mutants are noticed only by a wait. */
const PATIENCE = isMutationRun ? 0.35 : process.env.CI ? 3 : 1;
/** Far longer than anything takes, also a mail whose delivery failed: it goes out once its lease of 20 s has ended. */
export const WAIT_MS = 30_000;
/** For a process to start, on a machine that starts several and has few cores. */
export const START_MS = 60_000;

/**
 * Polls a condition every `every` ms (20), and resolves to its first truthy value. A condition that throws does not
 * hold yet; its last error is the cause of the Error that ends the wait after `within` ms.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  {
    within = WAIT_MS,
    every = EVERY_MS,
    what = 'the condition',
  }: {
    /** Only if the time is what the test is about, or if it may take longer than the default (30 s). */
    within?: number;
    every?: number;
    what?: string;
  } = {},
): Promise<NonNullable<T>> {
  // A shorter time is what the test is about.
  const limit = within < WAIT_MS ? within : within * PATIENCE;
  const end = performance.now() + limit;
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
  throw new Error(`${what}: not within ${limit} ms`, { cause });
}

/** The promise's outcome, or an Error that names `what` after `within` ms. */
export function inTime<T>(promise: Promise<T>, { within, what }: { within: number; what: string }): Promise<T> {
  const { promise: expiry, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${what}: not within ${within} ms`)), within);
  return Promise.race([promise, expiry]).finally(() => clearTimeout(timer));
}
