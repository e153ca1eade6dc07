import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { callerOf, type Reply } from '../rig/callers.ts';
import { onBothProcesses, onStack, PASSWORD } from '../rig/scenario.ts';

/** Five logins per address: which address counts, at which paths, and in which networks of IPv6. */
const hex = (number: number) => number.toString(16);
const freshPrefix48 = () => `2001:${hex(randomInt(0x1000, 0xffff))}:${hex(randomInt(0x1000, 0xffff))}`;

const json = { 'content-type': 'application/json' };
const attempt = () => ({ email: freshEmail(), password: PASSWORD });
const limited = [401, 401, 401, 401, 401, 429];

/** The statuses of six attempts in turn. */
const attempts = async (tryLogin: (i: number) => Promise<{ status: number }>) => {
  const statuses: number[] = [];
  for (let i = 0; i < 6; i++) statuses.push((await tryLogin(i)).status);
  return statuses;
};

onBothProcesses((stack) => {
  const attemptsWith = (headersOf: (i: number) => Record<string, string>) =>
    attempts((i) => callerOf('rest', stack().url)('auth.login', attempt(), { headers: headersOf(i) }));

  // checks: 14
  test('behind one proxy, only the last X-Forwarded-For entry counts', async () => {
    const own = clientAddress();
    expect(await attemptsWith(() => ({ 'x-forwarded-for': `${clientAddress()}, ${own}` }))).toEqual(limited);
  });

  // checks: 14
  test('of several X-Forwarded-For headers, only the last counts', async () => {
    const own = clientAddress();
    const statuses = await attempts(() =>
      ask(`${stack().url}/auth/login`, {
        method: 'POST',
        headers: { ...json, 'x-forwarded-for': [clientAddress(), `${clientAddress()}, ${clientAddress()}`, own] },
        body: JSON.stringify(attempt()),
      }),
    );
    expect(statuses).toEqual(limited);
  });

  // checks: 14
  test.each(['x-real-ip', 'forwarded', 'cf-connecting-ip', 'x-client-ip', 'true-client-ip'])(
    'the header %s is ignored',
    async (header) => {
      const own = clientAddress();
      expect(await attemptsWith(() => ({ 'x-forwarded-for': own, [header]: clientAddress() }))).toEqual(limited);
    },
  );

  // checks: 15
  test('addresses of one IPv6 /64 share a limit', async () => {
    const prefix = freshPrefix48();
    expect(await attemptsWith((i) => ({ 'x-forwarded-for': `${prefix}::${i + 1}` }))).toEqual(limited);
  });

  // checks: 15
  test('an IPv4 address and its IPv4-mapped IPv6 form share a limit', async () => {
    const own = clientAddress();
    expect(await attemptsWith((i) => ({ 'x-forwarded-for': i % 2 ? own : `::ffff:${own}` }))).toEqual(limited);
  });

  /** A login as each path takes it. */
  const tryAt = (path: string, address: string, body: unknown = attempt()) =>
    ask(stack().url + path, {
      method: 'POST',
      headers: { ...json, 'x-forwarded-for': address },
      body: JSON.stringify(body),
    });

  // checks: 16
  test.each<[path: string, body?: unknown]>([
    ['/auth/login?x=1'],
    ['/trpc/auth.login'],
    ['/trpc/auth.login?x=1'],
    ['/trpc/auth.login?batch=1', { 0: attempt() }],
  ])('an attempt at %s counts as one of the five at /auth/login', async (path, body) => {
    const address = clientAddress();
    for (let i = 0; i < 4; i++) expect((await tryAt('/auth/login', address)).status).toBe(401);
    expect((await tryAt(path, address, body)).status).toBe(401);
    expect((await tryAt(path, address, body)).status).toBe(429);
    expect((await tryAt('/auth/login', address)).status).toBe(429);
  });

  // checks: 16
  test.each([
    '/auth/login/',
    '//auth/login',
    '/AUTH/LOGIN',
    '/auth%2Flogin',
    '/auth/login;x=1',
    '//trpc/auth.login',
    '/TRPC/auth.login',
    '/trpc/AUTH.LOGIN',
    '/trpc%2Fauth.login',
    '/trpc/auth/login',
    '/trpc/auth.login/',
  ])('%s is not a login path', async (path) => {
    expect((await tryAt(path, clientAddress())).status).toBe(404);
  });

  /** How many of the concurrent guesses from each address are checked. */
  const lookedAt = async (addresses: string[], each: number) => {
    const call = callerOf('rest', stack().url);
    let through = 0;
    for (const address of addresses) {
      // A loaded machine may not take all passwords at once.
      const guess = async (): Promise<Reply> => {
        const reply = await call('auth.login', attempt(), { address });
        return reply.status === 503 ? guess() : reply;
      };
      const replies = await Promise.all(Array.from({ length: each }, guess));
      for (const { status } of replies) expect([401, 429]).toContain(status);
      through += replies.filter(({ status }) => status === 401).length;
    }
    return through;
  };

  test('a /48 has sixteen times the allowance of a /64', async () => {
    const prefix = freshPrefix48();
    const addresses = Array.from({ length: 60 }, (_, i) => `${prefix}:${hex(i)}00:${hex(i)}::1`);
    expect(await lookedAt(addresses, 5)).toBe(80);
    expect(await lookedAt([`${freshPrefix48()}::1`], 6)).toBe(5);
  });

  test('a /56 has four times the allowance of a /64', async () => {
    const prefix = freshPrefix48();
    const addresses = Array.from({ length: 10 }, (_, i) => `${prefix}:ab${hex(i).padStart(2, '0')}::1`);
    expect(await lookedAt(addresses, 5)).toBe(20);
    expect(await lookedAt([`${prefix}:ac00::1`], 6)).toBe(5);
  });

  test('requests refused for a smaller network do not count for the larger one', async () => {
    const prefix = freshPrefix48();
    expect(await lookedAt([`${prefix}:ab00::1`, `${prefix}:ab00::2`], 50)).toBe(5);
    expect(await lookedAt([`${prefix}:ab01::1`], 6)).toBe(5);
  });

  test('a refusal states when its network may try again', async () => {
    const prefix = freshPrefix48();
    for (let i = 0; i < 4; i++) await lookedAt([`${prefix}:ab0${i}::1`], 5);
    const address = `${prefix}:ab04::1`;
    const { headers } = await callerOf('rest', stack().url)('auth.login', attempt(), { address });
    expect(headers.get('ratelimit-limit')).toBe('20');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('each IPv4 address has a limit of its own', async () => {
    const [a, b, c] = clientAddress().split('.');
    const addresses = Array.from({ length: 20 }, (_, i) => `${a}.${b}.${c}.${i + 1}`);
    expect(await lookedAt(addresses, 5)).toBe(100);
  });
});

describe('without a proxy in front', () => {
  onStack(
    'embedded',
    (stack) => {
      // checks: 14
      test('X-Forwarded-For is ignored', async () => {
        const call = callerOf('rest', stack().url);
        expect(await attempts(() => call('auth.login', attempt()))).toEqual(limited);
      });
    },
    { env: { TRUST_PROXY: '0' } },
  );
});
