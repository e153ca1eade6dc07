import { createHash } from 'node:crypto';
import { solveChallenge, verifySolution } from 'altcha-lib/v1';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createSearch } from '../../../client/src/challenge/search.ts';
import { issue, type Keys, LIFE_MS, solvedBy } from '../../../server/challenge/proof-of-work.ts';
import { solve } from '../../contract/rig/challenge.ts';

const keys: Keys = ['the current key'];
const MAX = 2000;

/** A challenge with the payload that solves it. */
function solved(procedure = 'auth.register', by: Keys = keys) {
  const challenge = issue(by, procedure, MAX);
  return { challenge, payload: solve(challenge) };
}

/** A payload with some fields changed. */
const altered = (payload: string, changes: object): string =>
  btoa(JSON.stringify({ ...JSON.parse(atob(payload)), ...changes }));

afterEach(() => {
  vi.useRealTimers();
});

describe('ALTCHA’s own library agrees', () => {
  test('it solves our challenges, and we accept its payload', async () => {
    const { algorithm, challenge, salt, signature, maxnumber } = issue(keys, 'auth.login', MAX);
    const solution = await solveChallenge(challenge, salt, algorithm, maxnumber).promise;
    const payload = btoa(JSON.stringify({ algorithm, challenge, number: solution?.number, salt, signature }));
    expect(solvedBy(keys, 'auth.login', payload)).toBe(challenge);
  });

  test('it verifies what our client solved', async () => {
    expect(await verifySolution(solved().payload, keys[0])).toBe(true);
  });
});

test.each([0, 7, 40, 55, 56, 63, 64, 71, 119, 130])(
  'the search hashes a salt of %i characters as Node does',
  (length) => {
    for (const number of [0, 9, 10, 99_999]) {
      const salt = 'ä'.repeat(length % 3) + 'x'.repeat(length);
      const challenge = createHash('sha256').update(`${salt}${number}`).digest('hex');
      expect(createSearch({ salt, challenge, maxnumber: number })(Number.POSITIVE_INFINITY)).toBe(number);
    }
  },
);

test('a search ends at the largest number, and goes on where it stopped', () => {
  const { salt, maxnumber } = issue(keys, 'auth.login', MAX);
  expect(createSearch({ salt, maxnumber, challenge: '0'.repeat(64) })(Number.POSITIVE_INFINITY)).toBeNull();
  const challenge = createHash('sha256').update(`${salt}25`).digest('hex');
  const search = createSearch({ salt, maxnumber, challenge });
  expect([search(10), search(10), search(10)]).toEqual([undefined, undefined, 25]);
});

test('a solution is valid for its procedure only', async () => {
  const { challenge, payload } = solved('auth.register');
  expect(solvedBy(keys, 'auth.register', payload)).toBe(challenge.challenge);
  expect(solvedBy(keys, 'auth.login', payload)).toBeUndefined();
});

test('a solution is valid for five minutes', async () => {
  const now = Date.now();
  vi.useFakeTimers({ now, toFake: ['Date'] });
  const { payload } = solved();
  vi.setSystemTime(now + LIFE_MS - 1000);
  expect(solvedBy(keys, 'auth.register', payload)).toBeDefined();
  vi.setSystemTime(now + LIFE_MS + 1000);
  expect(solvedBy(keys, 'auth.register', payload)).toBeUndefined();
});

test('a former secret is accepted, an unknown one is not', async () => {
  const { payload } = solved('auth.register', ['former']);
  expect(solvedBy(['current', 'former'], 'auth.register', payload)).toBeDefined();
  expect(solvedBy(['current'], 'auth.register', payload)).toBeUndefined();
});

test('an altered payload is refused', async () => {
  const { payload } = solved();
  const { salt, number, challenge } = JSON.parse(atob(payload));
  const later = salt.replace(/expires=\d+/, `expires=${Math.floor(Date.now() / 1000) + 9999}`);
  const rehashed = createHash('sha256').update(`${later}${number}`).digest('hex');
  const changes = [
    { number: number + 1 },
    { number: String(number) },
    { number: -number - 1 },
    { number: null },
    { salt: later },
    // A digit moved from the number to the salt hashes the same.
    { salt: `${salt}${String(number)[0]}`, number: Number(String(number).slice(1) || 0) },
    // Consistent, but not signed.
    { salt: later, challenge: rehashed },
    { challenge: challenge.toUpperCase() },
    { signature: '0'.repeat(64) },
    { signature: undefined },
    { algorithm: 'SHA-1' },
  ];
  for (const change of changes) {
    expect(solvedBy(keys, 'auth.register', altered(payload, change)), JSON.stringify(change)).toBeUndefined();
  }
});

test.each(['', '%%%', 'bnVsbA==', 'W10=', 'e30=', btoa('{"salt":{}}'), 'A'.repeat(1025)])(
  'a payload that is none is refused: %.20s',
  (text) => {
    expect(solvedBy(keys, 'auth.register', text)).toBeUndefined();
  },
);

test('a payload above its longest size is not decoded', async () => {
  const { payload } = solved();
  const padded = btoa(JSON.stringify({ ...JSON.parse(atob(payload)), more: 'x'.repeat(1000) }));
  expect(solvedBy(keys, 'auth.register', padded)).toBeUndefined();
});
