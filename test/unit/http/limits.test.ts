import { describe, expect, test } from 'vitest';
import { createLimits } from '../../server/accounts/limits.ts';
import type { KeyValueStore } from '../../server/parts/key-value/contract.ts';

const rate = { points: 2, seconds: 900 };
const rates = {
  login: rate,
  account: rate,
  device: rate,
  code: rate,
  register: rate,
  mailRequest: rate,
  token: rate,
  upload: rate,
  export: rate,
  idpStart: rate,
  passkeyStart: rate,
  read: rate,
};

/** Limits on counters in memory, whose windows end in 1.5 s; `counted` has the uses by counter and key. */
function limitsOf(changes: Partial<typeof rates> = {}) {
  const counted = new Map<string, number>();
  const counter: KeyValueStore['counter'] = ({ name, points, seconds }) => {
    const entryOf = (key: string) => `${name} ${points}/${seconds} ${key}`;
    const use = async (key: string) => {
      const entry = entryOf(key);
      counted.set(entry, (counted.get(entry) ?? 0) + 1);
      const giveBack = async () => {
        counted.set(entry, (counted.get(entry) ?? 0) - 1);
      };
      return { allowed: (counted.get(entry) ?? 0) <= points, msBeforeNext: 1500, giveBack };
    };
    const clear = async (key: string) => void counted.delete(entryOf(key));
    return Object.assign(use, { clear });
  };
  return { counted, limits: createLimits({ counter } as KeyValueStore, { ...rates, ...changes }) };
}

const brokenLimits = () =>
  createLimits({ counter: () => () => Promise.reject(new Error('down')) } as unknown as KeyValueStore, rates);

test('past the limit a refusal names the limit, and when to come back', async () => {
  const { limits } = limitsOf();
  for (let i = 0; i < 2; i++) await limits.enforce('login', '192.0.2.1');
  await expect(limits.enforce('login', '192.0.2.1')).rejects.toMatchObject({
    code: 'RATE_LIMITED',
    message: 'Too many attempts. Please retry after 15 minutes.',
    retryAfter: 2,
    limit: { points: 2, seconds: 900 },
  });
  await limits.enforce('login', '192.0.2.2');
  await limits.enforce('register', '192.0.2.1');
});

test.each([
  [60, '1 minute'],
  [120, '2 minutes'],
  [90, '90 seconds'],
  [30, '30 seconds'],
])('a window of %i seconds is %s', async (seconds, words) => {
  const { limits } = limitsOf({ login: { points: 1, seconds } });
  await limits.enforce('login', '192.0.2.1');
  await expect(limits.enforce('login', '192.0.2.1')).rejects.toThrow(`Please retry after ${words}.`);
});

test('a use that is given back counts no more, in none of its networks', async () => {
  const { limits, counted } = limitsOf();
  for (let i = 0; i < 3; i++) await (await limits.enforce('login', '2001:db8::1'))();
  expect([...counted.values()]).toEqual([0, 0, 0]);
});

test('the logins of an address are forgotten, in all of its networks, and nothing else is', async () => {
  const { limits, counted } = limitsOf();
  for (const name of ['login', 'idpStart', 'passkeyStart', 'token'] as const) {
    await limits.enforce(name, '2001:db8::1');
    await limits.enforce(name, '192.0.2.1');
  }
  await limits.forgetLogins('2001:DB8:0:0::1');
  expect([...counted.keys()].filter((key) => key.includes('2001'))).toEqual([
    'limit:token 2/900 2001:db8::/64',
    'limit:token 8/900 2001:db8::/56',
    'limit:token 32/900 2001:db8::/48',
  ]);
  await limits.forgetLogins('192.0.2.1');
  expect([...counted.keys()].filter((key) => key.includes('192.0.2.1'))).toEqual(['limit:token 2/900 192.0.2.1']);
});

test('a limit of 0 is none, and counts nothing', async () => {
  const { limits, counted } = limitsOf({ read: { points: 0, seconds: 1 } });
  await limits.enforce('read', '192.0.2.1');
  expect(counted.size).toBe(0);
});

describe('an IPv6 client', () => {
  test('counts for its /64, /56 and /48, with four and sixteen times the allowance', async () => {
    const { limits, counted } = limitsOf();
    await limits.enforce('token', '2001:db8:1:2fe:3:4:5:6');
    expect(Object.fromEntries(counted)).toEqual({
      'limit:token 2/900 2001:db8:1:2fe::/64': 1,
      'limit:token 8/900 2001:db8:1:200::/56': 1,
      'limit:token 32/900 2001:db8:1::/48': 1,
    });
  });

  test('that its own network refuses uses up nothing of a wider one', async () => {
    const { limits, counted } = limitsOf();
    const sent = Array.from({ length: 20 }, () => limits.enforce('login', '2001:db8::1').catch(() => undefined));
    await Promise.all(sent);
    expect([...counted.values()]).toEqual([20, 2, 2]);
  });

  test('is told the allowance of the network that refuses', async () => {
    const { limits } = limitsOf();
    for (let i = 0; i < 8; i++) await limits.enforce('login', `2001:db8:0:${i}::1`);
    const refused = limits.enforce('login', '2001:db8:0:8::1');
    await expect(refused).rejects.toMatchObject({ limit: { points: 8, seconds: 900 } });
  });
});

test('what counts for a user is the user, whatever the id looks like', async () => {
  const { limits, counted } = limitsOf();
  await limits.enforce('upload', '2001:db8::1');
  expect([...counted.keys()]).toEqual(['limit:upload 2/900 2001:db8::1']);
});

test('while the store is down, what could do harm is refused and what is only slowed down is not', async () => {
  const limits = brokenLimits();
  const needed = ['login', 'account', 'device', 'code', 'upload', 'export', 'idpStart', 'passkeyStart'] as const;
  for (const name of needed) await expect(limits.enforce(name, '192.0.2.1')).rejects.toThrow('down');
  for (const name of ['register', 'mailRequest', 'token', 'read'] as const) await limits.enforce(name, '192.0.2.1');
});

test('a refused token counts, and past the limit is refused as that', async () => {
  const { limits } = limitsOf();
  for (let i = 0; i < 2; i++) expect(await limits.refuseToken('192.0.2.1')).toMatchObject({ code: 'INVALID_TOKEN' });
  await expect(limits.refuseToken('192.0.2.1')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
});
