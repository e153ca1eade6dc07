import { describe, expect, test } from 'vitest';
import { createLimits } from '../../../server/limits/index.ts';
import type { KeyValueStore } from '../../../server/parts/key-value/contract.ts';

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
  administration: rate,
  passkeyStart: rate,
  authorizationStart: rate,
  directStart: rate,
  refresh: rate,
  totpStart: rate,
  uniqueField: rate,
  uploadCheck: rate,
  uploadParts: rate,
  read: rate,
};

/** Limits with counters in memory and windows that end in 1.5 s; `counted` has the uses by counter and key. */
function limitsOf(changes: Partial<typeof rates> = {}) {
  const counted = new Map<string, number>();
  const counter: KeyValueStore['counter'] = ({ name, points, seconds }) => {
    const entryOf = (key: string) => `${name} ${points}/${seconds} ${key}`;
    const use = async (key: string) => {
      const entry = entryOf(key);
      counted.set(entry, (counted.get(entry) ?? 0) + 1);
      const refund = async () => {
        counted.set(entry, (counted.get(entry) ?? 0) - 1);
      };
      return {
        allowed: (counted.get(entry) ?? 0) <= points,
        used: counted.get(entry) ?? 0,
        msBeforeNext: 1500,
        refund,
      };
    };
    const clear = async (key: string) => void counted.delete(entryOf(key));
    const read = async (key: string) => counted.get(entryOf(key)) ?? 0;
    return Object.assign(use, { clear, read });
  };
  return { counted, limits: createLimits({ counter } as KeyValueStore, { ...rates, ...changes }) };
}

const brokenLimits = () =>
  createLimits({ counter: () => () => Promise.reject(new Error('down')) } as unknown as KeyValueStore, rates);

test('past the limit a refusal names the limit, and when to retry', async () => {
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

test('a refunded use no longer counts, in any of its networks', async () => {
  const { limits, counted } = limitsOf();
  for (let i = 0; i < 3; i++) await (await limits.enforce('login', '2001:db8::1'))();
  expect([...counted.values()]).toEqual([0, 0, 0]);
});

test('resetting an address resets its logins in all of its networks, and nothing else', async () => {
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

test('a limit of 0 is off, and counts nothing', async () => {
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

  test('refused by its own network uses up nothing of a wider one', async () => {
    const { limits, counted } = limitsOf();
    const sent = Array.from({ length: 20 }, () => limits.enforce('login', '2001:db8::1').catch(() => undefined));
    await Promise.all(sent);
    expect([...counted.values()]).toEqual([20, 2, 2]);
  });

  test('gets the allowance of the network that refuses', async () => {
    const { limits } = limitsOf();
    for (let i = 0; i < 8; i++) await limits.enforce('login', `2001:db8:0:${i}::1`);
    const refused = limits.enforce('login', '2001:db8:0:8::1');
    await expect(refused).rejects.toMatchObject({ limit: { points: 8, seconds: 900 } });
  });
});

test('a limit per user accepts any id', async () => {
  const { limits, counted } = limitsOf();
  await limits.enforce('upload', '2001:db8::1');
  expect([...counted.keys()]).toEqual(['limit:upload 2/900 2001:db8::1']);
});

test('a use by a known device counts for all known devices too, unless its own limit refuses', async () => {
  const { limits, counted } = limitsOf();
  const key = { own: 'ada:laptop', shared: 'ada:known' };
  for (let i = 0; i < 2; i++) await limits.enforce('device', key);
  await expect(limits.enforce('device', key)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  const refund = await limits.enforce('device', { ...key, own: 'ada:phone' });
  const shared = () => counted.get('limit:device 8/900 ada:known');
  expect(shared()).toBe(3);
  await refund();
  expect([shared(), counted.get('limit:device 2/900 ada:phone')]).toEqual([2, 0]);
});

test('while the store is down, harmful calls are refused, and merely limited ones are not', async () => {
  const limits = brokenLimits();
  const needed = [
    'login',
    'account',
    'device',
    'code',
    'upload',
    'export',
    'administration',
    'idpStart',
    'passkeyStart',
    'authorizationStart',
    'directStart',
    'refresh',
    'totpStart',
    'uniqueField',
  ] as const;
  for (const name of needed) await expect(limits.enforce(name, '192.0.2.1')).rejects.toThrow('down');
  for (const name of ['register', 'mailRequest', 'token', 'read'] as const) await limits.enforce(name, '192.0.2.1');
  // No answer about the limit is no refusal by it.
  await expect(limits.allows('login', '192.0.2.1')).rejects.toThrow('down');
  expect(await limits.allows('mailRequest', '192.0.2.1')).toBe(true);
});

test('a wrong token counts, and past the limit gets the limit’s refusal', async () => {
  const { limits } = limitsOf();
  for (let i = 0; i < 2; i++) expect(await limits.refuseToken('192.0.2.1')).toMatchObject({ code: 'INVALID_TOKEN' });
  await expect(limits.refuseToken('192.0.2.1')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
});
