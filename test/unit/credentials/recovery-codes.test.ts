import { expect, test } from 'vitest';
import { renewCodes } from '../../../server/accounts/credentials/totp/recovery-codes.ts';

const query: Record<string, unknown> = {};
for (const step of ['where', 'values']) query[step] = () => query;
query['execute'] = async () => [];
const tables = { deleteFrom: () => query, insertInto: () => query } as never;

const RENEWALS = 200;

test('ten recovery codes have 80 random bits each', async () => {
  const renewed = await Promise.all(
    Array.from({ length: RENEWALS }, () => renewCodes(tables, { now: 0 } as never, { id: 'user_1' } as never)),
  );
  const codes = renewed.flat();
  expect(renewed.map((each) => each.length)).toEqual(Array(RENEWALS).fill(10));
  expect(new Set(codes).size).toBe(codes.length);
  expect(codes.filter((code) => !/^(?:[0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/.test(code))).toEqual([]);
  // Each of the 16 places has each of the 32 characters: 16 × 5 bits. One is missing once in 10^22 runs.
  const places = codes.map((code) => code.replaceAll('-', ''));
  for (let i = 0; i < 16; i++) expect(new Set(places.map((code) => code[i])).size).toBe(32);
});
