import { expect, test } from 'vitest';
import { isAddedSince } from '../../../server/accounts/credentials/login-methods.ts';

const MINUTE_MS = 60_000;
const since = Date.UTC(2026, 10, 22);

/** The time of an added method is by a process clock, that of a login or change by the database's. */
test.each([
  [0, true],
  [-1, true],
  [-10 * MINUTE_MS, true],
  [-10 * MINUTE_MS - 1, false],
  [-60 * MINUTE_MS, false],
])('a method added %i ms after a time counts as added since: %s', (ms, isSince) => {
  expect(isAddedSince({ method: 'passkey', proven: true, createdAt: since + ms }, since)).toBe(isSince);
});
