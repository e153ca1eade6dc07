import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { isSameHash } from '../../../server/accounts/credentials/passwords/hashes/bytes.ts';
import { isOwn, readHash } from '../../../server/accounts/credentials/passwords/hashes/index.ts';
import { createPasswords } from '../../../server/accounts/credentials/passwords/passwords.ts';
import { median } from '../../bench/measure.ts';
import { costlyHashes, dearHashes, foreignVectors, unknownHashes } from '../../rig/foreign-hashes.ts';
import { isMutationRun } from '../../rig/mutation-run.ts';
import { outsideMutationRun } from '../../rig/outside-mutation-run.ts';

const passwords = createPasswords({ iterations: 1000 });

describe.each(foreignVectors)('a hash of $from', ({ hash, password }) => {
  test('matches its password only, and needs a rehash', async () => {
    expect(hash.length).toBeLessThanOrEqual(255);
    expect(await passwords.verify(password, hash)).toBe(true);
    for (const wrong of [`${password} `, password.toUpperCase(), 'x', '']) {
      expect(await passwords.verify(wrong, hash)).toBe(false);
    }
    expect(passwords.isOutdated(hash)).toBe(true);
  });

  test('matches nothing with one character changed', async () => {
    for (const at of [hash.length >> 1, hash.length - 8]) {
      const other = hash[at] === 'a' ? 'b' : 'a';
      expect(await passwords.verify(password, hash.slice(0, at) + other + hash.slice(at + 1))).toBe(false);
    }
  });

  test('of less than half its length matches nothing', async () => {
    for (let length = 0; length < hash.length / 2; length += 5) {
      expect(await passwords.verify(password, hash.slice(0, length))).toBe(false);
    }
  });
});

test('better-auth accepts a password in each of its Unicode forms', async () => {
  const vector = foreignVectors.find(({ from }) => from === 'better-auth');
  if (!vector) throw new Error('no vector');
  expect(await passwords.verify(vector.password.normalize('NFD'), vector.hash)).toBe(true);
});

test('a password that is far too long is not normalized', async () => {
  const vector = foreignVectors.find(({ from }) => from === 'better-auth');
  if (!vector) throw new Error('no vector');
  const normalize = vi.spyOn(String.prototype, 'normalize');
  expect(await passwords.verify(`a${'\u0301'.repeat(1024)}`, vector.hash)).toBe(false);
  expect(normalize).not.toHaveBeenCalled();
  normalize.mockRestore();
});

// checks: 77
test.each(Object.entries(costlyHashes))('%s beyond the service’s bounds is never computed', async (_, hash) => {
  expect(readHash(hash)).toEqual({ problem: 'it costs too much time or memory' });
  const before = process.cpuUsage();
  expect(await passwords.verify('secret', hash)).toBe(false);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(500_000);
});

test.each(Object.entries(dearHashes))('%s just within the bounds is accepted', (_, hash) => {
  expect(readHash(hash)).toEqual({ hash: expect.objectContaining({ isTooCostly: false }) });
});

test('our own hash just within the bounds is accepted', () => {
  const stored = '10000000:c2FsdHNhbHRzYWx0c2FsdA==:gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=';
  expect(readHash(stored)).toEqual({ hash: expect.objectContaining({ rounds: 10_000_000 }) });
});

test('each hash reports the memory of its parameters', () => {
  const memoryOf = (stored: string) => {
    const found = readHash(stored);
    return 'hash' in found && !isOwn(found.hash) ? found.hash.memory : undefined;
  };
  expect(memoryOf(dearHashes['argon2'] ?? '')).toBe(256 * 2 ** 20);
  expect(memoryOf(dearHashes['scrypt'] ?? '')).toBe(1024 * (2 ** 18 + 4));
  expect(memoryOf(dearHashes['the lanes of scrypt'] ?? '')).toBe(1024 * (2 ** 12 + 130));
  expect(memoryOf(dearHashes['sha512-crypt'] ?? '')).toBe(10 * 2 ** 20);
  expect(memoryOf(dearHashes['PBKDF2'] ?? '')).toBe(0);
});

// checks: 77
test('hashes of 256 MiB are computed one after the other', async () => {
  const { verify } = createPasswords({ iterations: 1, cores: 8 });
  const dear = '$argon2id$v=19$m=262144,t=1,p=1$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0';
  const before = process.memoryUsage.rss();
  let most = 0;
  const sampling = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss() - before);
  }, 5);
  await Promise.all(Array.from({ length: 3 }, () => verify('secret', dear)));
  clearInterval(sampling);
  expect(most).toBeGreaterThan(100 * 2 ** 20);
  expect(most).toBeLessThan(400 * 2 ** 20);
});

test('hashes of the service do not wait for foreign ones', async () => {
  const { hash, verify } = createPasswords({ iterations: 1000, cores: 1 });
  const own = await hash('secret');
  const otherHash = foreignVectors.find(({ from }) => from === 'bcrypt 2b')?.hash ?? '';
  const ended: string[] = [];
  const note = (kind: string) => () => ended.push(kind);
  await Promise.all([
    ...Array.from({ length: 8 }, () => verify('secret', otherHash.replace('$05$', '$09$')).then(note('otherKey'))),
    verify('secret', own).then(note('own')),
  ]);
  expect(ended.indexOf('own')).toBeLessThanOrEqual(1);
});

describe.each<[string, (key: string, signer: string) => string]>([
  ['passlib PBKDF2', (key) => `$pbkdf2-sha256$1$c2FsdA$${key}`],
  ['Django PBKDF2', (key) => `pbkdf2_sha1$1$salt$${key}`],
  ['scrypt', (key) => `$scrypt$ln=1,r=8,p=1$c2FsdA$${key}`],
  ['Django scrypt', (key) => `scrypt$2$salt$8$1$${key}`],
  ['Firebase', (key, signer) => `$fbscrypt$v=1,n=1,r=8,p=1,sk=${signer}$c2FsdA==$${key}`],
])('a key of %s', (_, textOf) => {
  test.each(Array.from({ length: 70 }, (_, length) => length))(
    'of %i bytes is accepted only at full length',
    async (length) => {
      const key = Buffer.alloc(length, 'key').toString('base64');
      const signer = Buffer.alloc(length, 'signer').toString('base64');
      const known = [20, 32, 64].includes(length);
      expect('hash' in readHash(textOf(key, signer))).toBe(known);
      // It has the right length, and matches no password.
      expect(await passwords.verify('secret', textOf(key, signer))).toBe(false);
    },
  );
});

test('hashes of different lengths differ, whatever their prefix', () => {
  const hash = Buffer.alloc(32, 'hash');
  expect([32, 31, 20, 0].map((length) => isSameHash(hash, hash.subarray(0, length)))).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(isSameHash(hash.subarray(0, 20), hash)).toBe(false);
  expect(isSameHash(hash, Buffer.alloc(32, 'hasH'))).toBe(false);
});

test.each(unknownHashes)('no password matches “%s”', async (hash) => {
  expect(readHash(hash)).toEqual({ problem: 'it has an unknown form' });
  for (const password of ['secret', hash]) expect(await passwords.verify(password, hash)).toBe(false);
});

test('the log names the user of an unusable hash once, and never the hash', async () => {
  const lines: string[] = [];
  const logging = createPasswords({
    iterations: 1000,
    log: { warn: (...given: unknown[]) => void lines.push(JSON.stringify(given)) },
  });
  const unknown = unknownHashes[5] ?? '';
  for (const [user, hash] of [
    ['user_a', unknown],
    ['user_a', unknown],
    ['user_b', costlyHashes['bcrypt'] ?? ''],
    ['user_c', foreignVectors[0]?.hash ?? ''],
  ] as const) {
    await logging.verify('secret', hash, user);
  }
  expect(lines).toEqual([
    '[{"user":"user_a"},"the password hash of a user cannot be used: it has an unknown form"]',
    '[{"user":"user_b"},"the password hash of a user cannot be used: it costs too much time or memory"]',
  ]);
});

test('a long password costs no rounds of sha-crypt', async () => {
  const hash = foreignVectors.find(({ from }) => from === 'sha512-crypt')?.hash ?? '';
  const before = process.cpuUsage();
  expect(await passwords.verify('x'.repeat(100_000), hash)).toBe(false);
  expect(process.cpuUsage(before).user).toBeLessThan(500_000);
});

test('with many rounds of sha-crypt the maximum length is shorter, because every round reads the password', async () => {
  const hash = dearHashes['sha512-crypt'] ?? '';
  const before = process.cpuUsage();
  expect(await passwords.verify('x'.repeat(129), hash)).toBe(false);
  expect(process.cpuUsage(before).user).toBeLessThan(500_000);
});

test('eight foreign hashes per core may wait; more are refused until there is room', async () => {
  const { verify } = createPasswords({ iterations: 1, cores: 1 });
  const { password = '', hash = '' } = foreignVectors.find(({ from }) => from === 'bcrypt 2b') ?? {};
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => verify(password, hash)));
  expect(outcomes.map(({ status }) => status).sort()).toEqual([...Array(8).fill('fulfilled'), 'rejected', 'rejected']);
  const refusal = outcomes.find((outcome) => outcome.status === 'rejected');
  expect(refusal?.reason).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(await verify(password, hash)).toBe(true);
});

test('the event loop continues while hashes of each kind are computed', async () => {
  if (isMutationRun) outsideMutationRun('a measure of time');
  const { verify } = createPasswords({ iterations: 1, cores: 8 });
  // The first one loads the libraries and threads.
  const verifyAll = () => Promise.all(foreignVectors.map(({ password, hash }) => verify(password, hash)));
  await verifyAll();
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  await pause(20);
  await verifyAll();
  delays.disable();
  // In nanoseconds: the work of the thread, without the noise of a busy machine.
  expect(delays.percentile(75)).toBeLessThan(10_000_000);
});

test('a cheaper hash takes as long as one of the service', async () => {
  const configured = createPasswords({ iterations: 200_000 });
  const cheap = foreignVectors.filter(({ from }) => ['bcrypt 2b', 'argon2id', 'Django PBKDF2'].includes(from));
  expect(cheap).toHaveLength(3);
  const hashes = [await configured.hash('secret'), ...cheap.map(({ hash }) => hash)];
  const durationOf = async (hash: string) => {
    const began = performance.now();
    await configured.verify('wrong', hash);
    return performance.now() - began;
  };
  /** Relative to ours, alternating, so that noise affects both. */
  const ratios = async () => {
    const rounds: number[][] = [];
    for (let i = 0; i < 9; i++) {
      const round = [];
      for (const hash of hashes) round.push(await durationOf(hash));
      rounds.push(round);
    }
    const [ofOwn = Number.NaN, ...others] = hashes.map((_, kind) =>
      median(rounds.map((round) => round[kind] ?? Number.NaN)),
    );
    return others.map((other) => other / ofOwn);
  };
  // Without the extra work it would be below a tenth. A real difference appears each time; noise does not.
  const seen: number[][] = [];
  const isSame = (ratio: number) => ratio > 0.6 && ratio < 1.6;
  while (seen.length < 3 && !seen.at(-1)?.every(isSame)) seen.push(await ratios());
  expect(seen.at(-1)?.filter((ratio) => !isSame(ratio))).toEqual([]);
});
