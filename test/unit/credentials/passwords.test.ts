import { pbkdf2Sync } from 'node:crypto';
import { availableParallelism, getPriority } from 'node:os';
import { expect, test } from 'vitest';
import { createPasswords } from '../../../server/accounts/credentials/passwords/passwords.ts';
import { priorities } from '../../rig/process/process-tree.ts';

const passwords = createPasswords({ iterations: 1000 });

test('a hash is salted PBKDF2 with SHA-256, in the format of interface.md section 5.6', async () => {
  const [first, second] = [await passwords.hash('secret'), await passwords.hash('secret')];
  expect(first).not.toBe(second);
  const [iterations, salt = '', hash] = first.split(':');
  expect(iterations).toBe('1000');
  const bytes = Buffer.from(salt, 'base64');
  expect(bytes).toHaveLength(16);
  expect(hash).toBe(pbkdf2Sync('secret', bytes, 1000, 32, 'sha256').toString('base64'));
});

test('only the right password matches, and without a hash none does', async () => {
  const stored = await passwords.hash('secret');
  expect(await passwords.verify('secret', stored)).toBe(true);
  expect(await passwords.verify('Secret', stored)).toBe(false);
  expect(await passwords.verify('secret', null)).toBe(false);
});

test('a hash with fewer iterations matches and is outdated, one with more is kept', async () => {
  const [fewer, same, more] = await Promise.all(
    [999, 1000, 1001].map((iterations) => createPasswords({ iterations }).hash('secret')),
  );
  for (const stored of [fewer, same, more]) expect(await passwords.verify('secret', stored ?? '')).toBe(true);
  expect([fewer, same, more].map((stored) => passwords.isOutdated(stored ?? ''))).toEqual([true, false, false]);
});

test('hashing threads have a lower priority than the event loop', async () => {
  const own = getPriority();
  await passwords.hash('secret');
  const threads = priorities(process.pid);
  expect(threads.get('libuv-worker')).toEqual(new Set([15]));
  expect(getPriority()).toBe(own);
});

test('a full queue refuses, and accepts the next once there is room', async () => {
  const cores = availableParallelism();
  const room = cores * 64 + cores + 1;
  const outcomes = await Promise.allSettled(Array.from({ length: room + 3 }, () => passwords.hash('secret')));
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
  expect(refused).toHaveLength(3);
  for (const { reason } of refused) expect(reason).toMatchObject({ code: 'SERVICE_UNAVAILABLE', retryAfter: 2 });
  expect(await passwords.hash('secret')).toMatch(/^1000:/);
});

test('a hash of half the iterations, a full one and none take the same CPU', async () => {
  const configured = createPasswords({ iterations: 100_000 });
  const half = await createPasswords({ iterations: 50_000 }).hash('secret');
  const whole = await configured.hash('secret');
  const cpuOf = async (stored: string | null) => {
    const before = process.cpuUsage();
    await configured.verify('secret', stored);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  // Alternating, and the minimum of each, because other work only adds time.
  const rounds: number[][] = [];
  for (let i = 0; i < 5; i++) rounds.push([await cpuOf(half), await cpuOf(whole), await cpuOf(null)]);
  const least = (kind: number) => Math.min(...rounds.map((round) => round[kind] ?? Number.NaN));
  const [ofHalf, ofWhole, ofNone] = [least(0), least(1), least(2)];
  for (const other of [ofHalf, ofNone]) {
    expect(other / ofWhole).toBeGreaterThan(0.7);
    expect(other / ofWhole).toBeLessThan(1.4);
  }
});
