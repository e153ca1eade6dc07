/**
 * Passwords are hashed with PBKDF2 and SHA-256, stored as `<iterations>:<salt_base64>:<hash_base64>` (interface.md
 * section 5.6). Hashes of other products (hashes/) are verified, never created. Hashing runs on threads, `cores` + 1 at
 * a time. Other products' hashes have a separate queue that computes half of `cores` at a time. A full queue rejects
 * with SERVICE_UNAVAILABLE.
 */
import { pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import pLimit from 'p-limit';
import { ServiceError } from '../../../errors.ts';
import { createBound } from '../../../lib/rate-cap.ts';
import type { Log } from '../../../telemetry/log.ts';
import { gauges, observe } from '../../../telemetry/metrics.ts';
import { type ForeignHash, isOwn, readHash } from './hashes/index.ts';
import { createMemoryQueue } from './memory-queue.ts';
import { lowerPoolThreads } from './pool-threads.ts';

const derive = promisify(pbkdf2);

const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** About a second of computation. Callers that would wait longer are refused. */
const QUEUE_PER_CORE = 64;
/** Hashes of other products take up to two seconds each. */
const FOREIGN_PER_CORE = 8;
/** The memory for all concurrent hashes of other products: as much as one of them may take. */
const FOREIGN_BYTES = 256 * 2 ** 20;
const HOUR_MS = 60 * 60_000;

/** The salt if there is no stored hash, so that the check takes as long. */
const dummySalt = randomBytes(SALT_BYTES);

interface Checked {
  isRight: boolean;
  /** The number of our iterations that takes the same time. */
  spent: number;
  /** Why the hash is unusable. */
  problem?: string;
}

const noMatch: Checked = { isRight: false, spent: 0 };

/** Creates and verifies password hashes. */
export function createPasswords({
  iterations,
  cores = availableParallelism(),
  log,
}: {
  iterations: number;
  cores?: number;
  log?: Pick<Log, 'warn'>;
}) {
  // One more than cores, so that no core is idle while the event loop starts the next hash. Measured on two cores: 0.97
  // and 0.98 of bare PBKDF2; with `cores` 0.87 and 0.93.
  const limit = pLimit(cores + 1);
  const foreignQueue = createMemoryQueue({ atOnce: Math.ceil(cores / 2), bytes: FOREIGN_BYTES });
  gauges(() => ({
    account_password_queue_running: limit.activeCount + foreignQueue.running,
    account_password_queue_waiting: limit.pendingCount + foreignQueue.waiting,
  }));
  const mayWarn = createBound({ most: 1, withinMs: HOUR_MS });
  const pace = createPace();

  const full = () =>
    new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('the password queue is full'), retryAfter: 2 });

  /** A queued task that is measured from its start. */
  const observed = <T>(work: () => Promise<T>): (() => Promise<T>) => {
    const queued = performance.now();
    return () => {
      observe('account_password_wait_seconds', {}, (performance.now() - queued) / 1000);
      return work();
    };
  };

  const run = async (password: string, salt: Buffer, rounds: number): Promise<Buffer> => {
    if (limit.pendingCount >= cores * QUEUE_PER_CORE) throw full();
    const compute = async () => {
      const began = performance.now();
      const deriving = derive(password, salt, rounds, HASH_BYTES, 'sha256');
      lowerPoolThreads();
      const derived = await deriving;
      // A short one is mostly overhead.
      if (rounds >= iterations / 2) pace.see((performance.now() - began) / rounds);
      return derived;
    };
    return limit(observed(compute));
  };

  const runForeign = async (password: string, { memory, matches }: ForeignHash): Promise<Checked> => {
    if (foreignQueue.running + foreignQueue.waiting >= cores * FOREIGN_PER_CORE) throw full();
    const compute = async (): Promise<Checked> => {
      const began = performance.now();
      const isRight = await matches(password).catch(() => undefined);
      const spent = pace.iterationsIn(performance.now() - began);
      lowerPoolThreads();
      return isRight === undefined ? { isRight: false, spent, problem: 'it cannot be computed' } : { isRight, spent };
    };
    return foreignQueue.run(memory, observed(compute));
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
     * Takes equally long without a stored hash (`null`: no user or no password), unless that costs more than ours. An
     * unusable hash matches no password; it is logged with the user id once an hour.
     */
    async verify(password: string, stored: string | null, userId?: string): Promise<boolean> {
      const { isRight, spent, problem } = stored === null ? noMatch : await check(password, stored);
      if (problem !== undefined && userId !== undefined && mayWarn(userId)) {
        log?.warn({ user: userId }, `the password hash of a user cannot be used: ${problem}`);
      }
      // Otherwise a cheaper hash would take less time than a missing one.
      if (spent < iterations) await run(password, dummySalt, iterations - spent);
      return isRight;
    },

    /** Whether to replace a stored hash: it is another product's, or has fewer iterations than configured. */
    isOutdated(stored: string): boolean {
      const found = readHash(stored);
      return 'problem' in found || !isOwn(found.hash) || found.hash.rounds < iterations;
    },
  };
}

export type Passwords = ReturnType<typeof createPasswords>;

/** Tracks the recent duration of our iterations on this machine under its load. */
function createPace() {
  let msEach: number | undefined;
  return {
    see(ms: number): void {
      msEach = msEach === undefined ? ms : msEach + (ms - msEach) / 8;
    },
    /** 0 before the first measurement. */
    iterationsIn: (ms: number): number => (msEach === undefined ? 0 : Math.round(ms / msEach)),
  };
}
