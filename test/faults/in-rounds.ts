import { expect } from 'vitest';
import type { Call } from '../contract/rig/callers.ts';
import type { Stack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** The deadlines of Redis and of the database, which tries again after a deadlock or a wait for a lock until then. */
const [REDIS_MS, DATABASE_MS] = [500, 4000];

/**
 * A caller that calls again after a 503 at the deadline of Redis: that is a busy machine, and says nothing about a race. An
 * earlier 503 is returned, and one at the deadline of the database: it may come from a lock.
 */
export const patient =
  (call: Call): Call =>
  async (...request) => {
    const began = performance.now();
    const reply = await call(...request);
    const ms = performance.now() - began;
    return reply.status === 503 && ms >= REDIS_MS && ms < DATABASE_MS ? patient(call)(...request) : reply;
  };

/** Concurrent rounds: each waits for its mail. */
export const AT_ONCE = 20;

export async function inRounds<T>(rounds: number, play: (round: number, player: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const start = async (player: number) => {
    while (next < rounds) results.push(await play(next++, player));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, player) => start(player)));
  return results;
}

export const statuses = (replies: { status: number }[]) => replies.map(({ status }) => status).sort();

/** Resolves once the mails about the logins of many rounds are sent, so that a link need not wait behind them. */
export const allMailsSettled = (stack: Stack): Promise<unknown> =>
  until(async () => (await stack.database("select id from outbox where state = 'pending' limit 1")).length === 0, {
    within: 120_000,
    every: 200,
    what: 'the last mail of the test before',
  });

/** The number of each outcome, so that a failure shows all of them. */
export const tally = (outcomes: unknown[]) => {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[JSON.stringify(outcome)] = (counts[JSON.stringify(outcome)] ?? 0) + 1;
  return counts;
};

/** On each instance; a 503 of a busy machine says nothing about the session. */
export const livesAt = (callers: Call[], session: string): Promise<boolean[]> =>
  Promise.all(
    callers.map(async (caller) => {
      const answer = async () => {
        const { status } = await caller('profile.get', undefined, { session });
        return status === 503 ? undefined : status;
      };
      const status = await until(answer, { what: 'an answer about a session' });
      expect([200, 401]).toContain(status);
      return status === 200;
    }),
  );

/** A random moment during the other call. */
export const soon = () => new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
