/**
 * A challenge for machines: a proof of work instead of a puzzle. With `auto` it is demanded from half of a limit on, of
 * a client address, of its networks, or of all addresses together (LIMIT_FLOOD). The counts are of admitted calls:
 * refused ones, which cost two hashes and a read of the store, neither use up a limit nor make the work of others harder.
 */
import type { Config } from '../config/index.ts';
import { type ProofOfWork, ServiceError } from '../errors.ts';
import { allowsWhenDown, networksOf } from '../limits/index.ts';
import type { Consumption, KeyValueStore } from '../parts/key-value/contract.ts';
import type { Secrets } from '../secrets.ts';
import { count } from '../telemetry/metrics.ts';
import { type Guarded, guarded } from './guarded.ts';
import { issue, solvedBy, USABLE_MS } from './proof-of-work.ts';

export { isGuarded } from './guarded.ts';

/** At most 0.9 s in a browser with a main thread slowed four times, 0.1 s in a worker (docs/design/limits.md). */
const LOWEST = 100_000;
/** Each quarter of a limit doubles the work, up to sixteen times. */
const STEPS_PER_LIMIT = 4;
const MAX_STEP = 4;
const HALF = 0.5;
const ALL = 'all';

interface Asked {
  procedure: Guarded;
  clientAddress: string;
  /** The header Challenge-Solution; empty without one. */
  solution: string;
}

interface Parts {
  store: KeyValueStore;
  secrets: Pick<Secrets, 'derive'>;
}

/** Undefined with CHALLENGE=off. */
export function createChallenges(config: Pick<Config, 'challenge' | 'emailCodes' | 'rates'>, parts: Parts) {
  const { challenge: mode, rates } = config;
  if (mode === 'off') return undefined;
  const { store, secrets } = parts;
  const keys = secrets.derive('challenge');
  const used = store.counter({ name: 'challenge-used', points: 1, seconds: USABLE_MS / 1000 });
  const counters = new Map(
    Object.values(guarded).map((name) => {
      const counterOf = (seconds: number) => store.counter({ name: `challenge:${name}`, points: 1, seconds });
      return [name, { own: counterOf(rates[name].seconds), all: counterOf(rates.flood.seconds) }];
    }),
  );
  for (const procedure of Object.keys(guarded))
    for (const outcome of ['demanded', 'solved', 'failed'])
      count('account_challenges_total', { procedure, outcome }, 0);

  /** The counts that a call is part of, with the limit of each. */
  const sharesOf = ({ procedure, clientAddress }: Asked) => {
    const name = guarded[procedure];
    const { own, all } = counters.get(name) as {
      own: ReturnType<typeof store.counter>;
      all: ReturnType<typeof store.counter>;
    };
    return [
      ...networksOf(clientAddress).map(({ key, times }) => ({ counter: own, key, limit: rates[name].points * times })),
      { counter: all, key: ALL, limit: rates.flood.points },
    ];
  };
  type Shares = ReturnType<typeof sharesOf>;

  /** The largest part of a limit that is in use. */
  const loadOf = async (shares: Shares): Promise<number> => {
    const parts = await Promise.all(shares.map(async ({ counter, key, limit }) => (await counter.read(key)) / limit));
    return Math.max(...parts);
  };

  /**
   * Narrowest first. It stops at a full one, because the limit refuses that call: one client cannot use up the share of
   * all, nor make its own work harder by refused calls.
   */
  const use = async (shares: Shares) => {
    const counted: Consumption[] = [];
    let load = 0;
    for (const { counter, key, limit } of shares) {
      const consumption = await counter(key);
      load = Math.max(load, (consumption.used - 1) / limit);
      if (key !== ALL && consumption.used > limit) {
        await consumption.refund();
        break;
      }
      counted.push(consumption);
    }
    return {
      /** Before this use. */
      load,
      refund: () => Promise.all(counted.map((consumption) => consumption.refund())),
    };
  };

  const demand = (procedure: Guarded, load: number): ServiceError => {
    count('account_challenges_total', { procedure, outcome: 'demanded' });
    const step = Math.min(MAX_STEP, Math.max(0, Math.floor((load - HALF) * STEPS_PER_LIMIT)));
    const challenge: ProofOfWork = issue(keys, procedure, LOWEST * 2 ** step);
    const message = 'Solve this challenge, and repeat the request with the header Challenge-Solution';
    return new ServiceError('CHALLENGE_REQUIRED', {
      details: { challenge: { message, rule: 'proof_of_work', ...challenge } },
    });
  };

  const check = async (asked: Asked, solved: string | undefined): Promise<void> => {
    const { procedure } = asked;
    const shares = sharesOf(asked);
    if (solved !== undefined) {
      if ((await used(solved)).allowed) {
        await use(shares);
        count('account_challenges_total', { procedure, outcome: 'solved' });
        return;
      }
      count('account_challenges_total', { procedure, outcome: 'failed' });
    }
    const load = await loadOf(shares);
    if (mode === 'always' || load >= HALF) throw demand(procedure, load);
    const counted = await use(shares);
    if (counted.load < HALF) return;
    // Other calls were counted since the counts were read.
    await counted.refund();
    throw demand(procedure, counted.load);
  };

  return {
    /**
     * Rejects with CHALLENGE_REQUIRED for a call that needs a solution and has none. While the store is down, calls
     * pass if their limit lets them; with `always` they need a solution, which can then be used again.
     */
    async admit(asked: Asked): Promise<void> {
      const { procedure, solution } = asked;
      // It answers 404, and so costs nothing.
      if (procedure === 'auth.beginEmailCode' && !config.emailCodes) return;
      const solved = solution === '' ? undefined : solvedBy(keys, procedure, solution);
      if (solution !== '' && solved === undefined) count('account_challenges_total', { procedure, outcome: 'failed' });
      await check(asked, solved).catch((error: unknown) => {
        const isOutage = error instanceof ServiceError && error.code === 'SERVICE_UNAVAILABLE';
        if (!isOutage || !allowsWhenDown(guarded[procedure])) throw error;
        if (mode === 'always' && solved === undefined) throw demand(procedure, 0);
      });
    },
  };
}

export type Challenges = NonNullable<ReturnType<typeof createChallenges>>;
