import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../rig/address.ts';
import { callerOf } from './callers.ts';
import { onBothStacks, PASSWORD } from './scenario.ts';

/** Five logins an address: what the larger networks of IPv6 addresses make of that. */
const hex = (number: number) => number.toString(16);
const freshPrefix48 = () => `2001:${hex(randomInt(0x1000, 0xffff))}:${hex(randomInt(0x1000, 0xffff))}`;

onBothStacks((stack) => {
  /** How many of so many guesses at once from each address are looked at. */
  const lookedAt = async (addresses: string[], each: number) => {
    const call = callerOf('rest', stack().url);
    let through = 0;
    for (const address of addresses) {
      const guess = () => call('auth.login', { email: freshEmail(), password: PASSWORD }, { address });
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

  test('a /56 has four times the allowance', async () => {
    const prefix = freshPrefix48();
    const addresses = Array.from({ length: 10 }, (_, i) => `${prefix}:ab${hex(i).padStart(2, '0')}::1`);
    expect(await lookedAt(addresses, 5)).toBe(20);
    expect(await lookedAt([`${prefix}:ac00::1`], 6)).toBe(5);
  });

  test('what a smaller network is refused does not count for the larger', async () => {
    const prefix = freshPrefix48();
    expect(await lookedAt([`${prefix}:ab00::1`, `${prefix}:ab00::2`], 50)).toBe(5);
    expect(await lookedAt([`${prefix}:ab01::1`], 6)).toBe(5);
  });

  test('a refusal says when its network may go on', async () => {
    const prefix = freshPrefix48();
    for (let i = 0; i < 4; i++) await lookedAt([`${prefix}:ab0${i}::1`], 5);
    const address = `${prefix}:ab04::1`;
    const { headers } = await callerOf('rest', stack().url)(
      'auth.login',
      { email: freshEmail(), password: PASSWORD },
      { address },
    );
    expect(headers.get('ratelimit-limit')).toBe('20');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('an IPv4 address counts for itself alone', async () => {
    const [a, b, c] = clientAddress().split('.');
    const addresses = Array.from({ length: 20 }, (_, i) => `${a}.${b}.${c}.${i + 1}`);
    expect(await lookedAt(addresses, 5)).toBe(100);
  });
});
