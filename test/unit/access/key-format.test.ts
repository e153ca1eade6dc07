import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { isKeyId, newKey, parseKey } from '../../../server/access/key-format.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** As docs/access-keys.md describes it for secret scanners. */
const isValidChecksum = (key: string) =>
  [...key.slice(-6)].reduce((value, digit) => value * 62 + DIGITS.indexOf(digit), 0) === crc32(key.slice(0, -6));

test('a key has its id, its secret and the checksum of both', () => {
  for (let i = 0; i < 1000; i++) {
    const { id, secret, key } = newKey();
    expect(key).toMatch(/^acct_[0-9A-Za-z]{22}_[0-9A-Za-z]{49}$/);
    expect(key.startsWith(`acct_${id}_${secret}`)).toBe(true);
    expect(isValidChecksum(key)).toBe(true);
    expect(parseKey(key)).toEqual({ id, secret });
    expect(isKeyId(id)).toBe(true);
  }
});

test('a key with one wrong or swapped character is no key', () => {
  const { key } = newKey();
  for (let i = 0; i < key.length; i++) {
    const changed = key.slice(0, i) + (key[i] === '0' ? '1' : '0') + key.slice(i + 1);
    expect(parseKey(changed), changed).toBeUndefined();
    const swapped = key.slice(0, i) + (key[i + 1] ?? '') + key[i] + key.slice(i + 2);
    if (swapped !== key) expect(parseKey(swapped), swapped).toBeUndefined();
  }
  for (const text of ['', 'acct_', `${key}\n`, ` ${key}`, key.toUpperCase(), `${key}0`]) {
    expect(parseKey(text), text).toBeUndefined();
  }
});

test('later keys have greater ids', async () => {
  const { id } = newKey();
  await new Promise((resolve) => setImmediate(resolve));
  expect(newKey().id > id).toBe(true);
});
