import { pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import pLimit from 'p-limit';
import { ServiceError } from '../errors.ts';
import { gauges, observe } from '../telemetry/metrics.ts';
import { lowerPoolThreads } from './pool-threads.ts';

const derive = promisify(pbkdf2);

const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** About a second of work; a caller that would wait longer is refused. */
const QUEUE_PER_CORE = 64;

/** Hashed with where there is no stored hash, so that the check takes as long. */
const dummySalt = randomBytes(SALT_BYTES);

/**
 * PBKDF2 with SHA-256, stored as `<iterations>:<salt_base64>:<hash_base64>` (interface.md section 5.6). Runs on libuv's
 * threads, one more at a time than `cores`; rejects with SERVICE_UNAVAILABLE when the queue is full.
 */
export function createPasswords({
  iterations,
  cores = availableParallelism(),
}: {
  iterations: number;
  cores?: number;
}) {
  // One more than cores, so that no core is idle while the event loop starts the next. Measured on two cores: 0.97 and 0.98
  // of bare PBKDF2; with as many as cores 0.87 and 0.93.
  const limit = pLimit(cores + 1);
  gauges(() => ({
    account_password_queue_running: limit.activeCount,
    account_password_queue_waiting: limit.pendingCount,
  }));

  const run = (password: string, salt: Buffer, rounds: number): Promise<Buffer> => {
    if (limit.pendingCount >= cores * QUEUE_PER_CORE) {
      throw new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('the password queue is full'), retryAfter: 2 });
    }
    const queued = performance.now();
    return limit(() => {
      observe('account_password_wait_seconds', {}, (performance.now() - queued) / 1000);
      const derived = derive(password, salt, rounds, HASH_BYTES, 'sha256');
      lowerPoolThreads();
      return derived;
    });
  };

  return {
    async hash(password: string): Promise<string> {
      const salt = randomBytes(SALT_BYTES);
      const hash = await run(password, salt, iterations);
      return `${iterations}:${salt.toString('base64')}:${hash.toString('base64')}`;
    },

    /** Takes the same time whether there is a stored hash or not (`null`: no such user, or one without a password). */
    async verify(password: string, stored: string | null): Promise<boolean> {
      if (stored === null) {
        await run(password, dummySalt, iterations);
        return false;
      }
      const [rounds, salt, hash] = parse(stored);
      const isRight = timingSafeEqual(await run(password, salt, rounds), hash);
      // Otherwise a hash with fewer iterations would take less time than a missing one.
      if (rounds < iterations) await run(password, dummySalt, iterations - rounds);
      return isRight;
    },

    /** Whether a stored hash has fewer iterations than configured. A hash with more is never replaced. */
    isOutdated: (stored: string): boolean => parse(stored)[0] < iterations,
  };
}

export type Passwords = ReturnType<typeof createPasswords>;

function parse(stored: string): [iterations: number, salt: Buffer, hash: Buffer] {
  const [rounds = '', salt = '', hash = ''] = stored.split(':');
  return [Number(rounds), Buffer.from(salt, 'base64'), Buffer.from(hash, 'base64')];
}
