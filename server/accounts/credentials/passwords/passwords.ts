import { pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import pLimit from 'p-limit';
import { createBound } from '../bound.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import { gauges, observe } from '../telemetry/metrics.ts';
import { type ForeignHash, isOwn, readHash } from './password-hashes/index.ts';
import { lowerPoolThreads } from './pool-threads.ts';

const derive = promisify(pbkdf2);

const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** About a second of work; a caller that would wait longer is refused. */
const QUEUE_PER_CORE = 64;
/** Hashes of other products take up to a second each. */
const FOREIGN_PER_CORE = 8;
const HOUR_MS = 60 * 60_000;

/** Hashed with where there is no stored hash, so that the check takes as long. */
const dummySalt = randomBytes(SALT_BYTES);

interface Checked {
  isRight: boolean;
  /** The iterations of ours that would have taken as long. */
  spent: number;
  /** Why the hash is of no use. */
  problem?: string;
}

const noMatch: Checked = { isRight: false, spent: 0 };

/**
 * PBKDF2 with SHA-256, stored as `<iterations>:<salt_base64>:<hash_base64>` (interface.md section 5.6); hashes of other forms
 * (`password-hashes/`) are verified, not made. Runs on threads, one more at a time than `cores`; rejects with
 * SERVICE_UNAVAILABLE when the queue is full.
 */
export function createPasswords({
  iterations,
  cores = availableParallelism(),
  log,
}: {
  iterations: number;
  cores?: number;
  log?: Pick<Log, 'warn'>;
}) {
  // One more than cores, so that no core is idle while the event loop starts the next. Measured on two cores: 0.97 and 0.98
  // of bare PBKDF2; with as many as cores 0.87 and 0.93.
  const limit = pLimit(cores + 1);
  gauges(() => ({
    account_password_queue_running: limit.activeCount,
    account_password_queue_waiting: limit.pendingCount,
  }));
  const mayWarn = createBound({ most: 1, withinMs: HOUR_MS });
  const pace = createPace();

  const full = () =>
    new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('the password queue is full'), retryAfter: 2 });

  const inTurn = async <T>(compute: () => Promise<T>): Promise<T> => {
    if (limit.pendingCount >= cores * QUEUE_PER_CORE) throw full();
    const queued = performance.now();
    return limit(() => {
      observe('account_password_wait_seconds', {}, (performance.now() - queued) / 1000);
      return compute();
    });
  };

  const run = (password: string, salt: Buffer, rounds: number): Promise<Buffer> =>
    inTurn(async () => {
      const began = performance.now();
      const deriving = derive(password, salt, rounds, HASH_BYTES, 'sha256');
      lowerPoolThreads();
      const derived = await deriving;
      // A short one is mostly overhead.
      if (rounds >= iterations / 2) pace.see((performance.now() - began) / rounds);
      return derived;
    });

  let foreign = 0;
  const runForeign = async (password: string, { matches }: ForeignHash): Promise<Checked> => {
    if (foreign >= cores * FOREIGN_PER_CORE) throw full();
    let ms = 0;
    foreign += 1;
    const outcome = await inTurn(async () => {
      const began = performance.now();
      const isRight = await matches(password).catch(() => undefined);
      ms = performance.now() - began;
      lowerPoolThreads();
      return isRight;
    }).finally(() => {
      foreign -= 1;
    });
    const spent = pace.iterationsIn(ms);
    return outcome === undefined
      ? { isRight: false, spent, problem: 'it cannot be computed' }
      : { isRight: outcome, spent };
  };

  const check = async (password: string, stored: string): Promise<Checked> => {
    const found = readHash(stored);
    if ('problem' in found) return { ...noMatch, problem: found.problem };
    if (!isOwn(found.hash)) return runForeign(password, found.hash);
    const { rounds, salt, hash } = found.hash;
    return { isRight: timingSafeEqual(await run(password, salt, rounds), hash), spent: rounds };
  };

  return {
    async hash(password: string): Promise<string> {
      const salt = randomBytes(SALT_BYTES);
      const hash = await run(password, salt, iterations);
      return `${iterations}:${salt.toString('base64')}:${hash.toString('base64')}`;
    },

    /**
     * Takes the same time whether there is a stored hash or not (`null`: no such user, or one without a password), unless that
     * costs more than one of ours. A hash that cannot be used is that of no password; the log names its user, once an hour.
     */
    async verify(password: string, stored: string | null, userId?: string): Promise<boolean> {
      const { isRight, spent, problem } = stored === null ? noMatch : await check(password, stored);
      if (problem !== undefined && userId !== undefined && mayWarn(userId)) {
        log?.warn({ user: userId }, `the password hash of a user cannot be used: ${problem}`);
      }
      // Otherwise a hash that costs less would take less time than a missing one.
      if (spent < iterations) await run(password, dummySalt, iterations - spent);
      return isRight;
    },

    /** Whether a stored hash is to be replaced: one made elsewhere, or with fewer iterations than configured. */
    isOutdated(stored: string): boolean {
      const found = readHash(stored);
      return 'problem' in found || !isOwn(found.hash) || found.hash.rounds < iterations;
    },
  };
}

export type Passwords = ReturnType<typeof createPasswords>;

/** How long an iteration of ours takes as of late, on this machine with all that it does. */
function createPace() {
  let msEach: number | undefined;
  return {
    see(ms: number): void {
      msEach = msEach === undefined ? ms : msEach + (ms - msEach) / 8;
    },
    /** 0 before the first. */
    iterationsIn: (ms: number): number => (msEach === undefined ? 0 : Math.round(ms / msEach)),
  };
}
