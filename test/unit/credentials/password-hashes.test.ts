import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { readHash } from '../../server/accounts/password-hashes/index.ts';
import { createPasswords } from '../../server/accounts/passwords.ts';
import { median } from '../bench/measure.ts';
import { costlyHashes, foreignVectors, unknownHashes } from '../rig/foreign-hashes.ts';

const passwords = createPasswords({ iterations: 1000 });

describe.each(foreignVectors)('a hash of $from', ({ hash, password }) => {
  test('is that of its password alone, and is to be replaced', async () => {
    expect(hash.length).toBeLessThanOrEqual(255);
    expect(await passwords.verify(password, hash)).toBe(true);
    for (const wrong of [`${password} `, password.toUpperCase(), 'x', '']) {
      expect(await passwords.verify(wrong, hash)).toBe(false);
    }
    expect(passwords.isOutdated(hash)).toBe(true);
  });

  test('is that of no other text once a character of it differs', async () => {
    for (const at of [hash.length >> 1, hash.length - 8]) {
      const other = hash[at] === 'a' ? 'b' : 'a';
      expect(await passwords.verify(password, hash.slice(0, at) + other + hash.slice(at + 1))).toBe(false);
    }
  });

  test('of less than half its length is that of no password', async () => {
    for (let length = 0; length < hash.length / 2; length += 5) {
      expect(await passwords.verify(password, hash.slice(0, length))).toBe(false);
    }
  });
});

test('better-auth takes a password in each of its Unicode forms', async () => {
  const vector = foreignVectors.find(({ from }) => from === 'better-auth');
  if (!vector) throw new Error('no vector');
  expect(await passwords.verify(vector.password.normalize('NFD'), vector.hash)).toBe(true);
});

test.each(Object.entries(costlyHashes))('%s beyond what the service can bear is never computed', async (_, hash) => {
  expect(readHash(hash)).toEqual({ problem: 'it costs too much time or memory' });
  const before = process.cpuUsage();
  expect(await passwords.verify('secret', hash)).toBe(false);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(500_000);
});

test.each(unknownHashes)('of “%s” no password is right', async (hash) => {
  expect(readHash(hash)).toEqual({ problem: 'it has an unknown form' });
  for (const password of ['secret', hash]) expect(await passwords.verify(password, hash)).toBe(false);
});

test('the log names the user of a hash that cannot be used once, and never the hash', async () => {
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

test('eight hashes of other products a core wait; more are refused, and make room again', async () => {
  const { verify } = createPasswords({ iterations: 1, cores: 1 });
  const { password = '', hash = '' } = foreignVectors.find(({ from }) => from === 'bcrypt 2b') ?? {};
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => verify(password, hash)));
  expect(outcomes.map(({ status }) => status).sort()).toEqual([...Array(8).fill('fulfilled'), 'rejected', 'rejected']);
  const refusal = outcomes.find((outcome) => outcome.status === 'rejected');
  expect(refusal?.reason).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(await verify(password, hash)).toBe(true);
});

test('the event loop goes on while hashes of each kind are computed', async () => {
  const { verify } = createPasswords({ iterations: 1, cores: 8 });
  // The libraries and threads are loaded by the first.
  const verifyAll = () => Promise.all(foreignVectors.map(({ password, hash }) => verify(password, hash)));
  await verifyAll();
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  await pause(20);
  await verifyAll();
  delays.disable();
  // In nanoseconds: what the thread itself does, not what a busy machine adds to it now and then.
  expect(delays.percentile(75)).toBeLessThan(10_000_000);
});

test('a hash that costs less than ours takes as long as ours', async () => {
  const configured = createPasswords({ iterations: 200_000 });
  const cheap = foreignVectors.filter(({ from }) => ['bcrypt 2b', 'argon2id', 'Django PBKDF2'].includes(from));
  expect(cheap).toHaveLength(3);
  const hashes = [await configured.hash('secret'), ...cheap.map(({ hash }) => hash)];
  const durationOf = async (hash: string) => {
    const began = performance.now();
    await configured.verify('wrong', hash);
    return performance.now() - began;
  };
  /** To ours, in turns: what else the machine does is in all of them. */
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
  // Without more work it would be less than a tenth. A difference that is there shows each time; one of a busy machine does not.
  const seen: number[][] = [];
  const isSame = (ratio: number) => ratio > 0.6 && ratio < 1.6;
  while (seen.length < 3 && !seen.at(-1)?.every(isSame)) seen.push(await ratios());
  expect(seen.at(-1)?.filter((ratio) => !isSame(ratio))).toEqual([]);
});
