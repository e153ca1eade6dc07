import { afterEach, beforeEach, expect, test } from 'vitest';
import { counted, prepareLoginCounts } from '../../../server/accounts/login/count.ts';
import { type ErrorCode, ServiceError } from '../../../server/errors.ts';
import type { LoginMethod, ProviderName } from '../../../server/shared/method-names.ts';
import { recordWith } from '../../../server/telemetry/metrics.ts';

const ACME = 'acme' as ProviderName;
let recorded: unknown[] = [];
beforeEach(() => {
  recorded = [];
  recordWith({
    count: (name, { method, outcome }, by) => recorded.push([name, method, outcome, by]),
    observe: () => undefined,
    gauges: () => undefined,
  });
});
afterEach(() => recordWith(undefined));

test.each([
  ['logged-in', 'success'],
  ['second-factor', 'second_factor'],
  ['wrong-code', 'wrong_code'],
  ['cancelled', 'cancelled'],
  ['failed', 'failed'],
  ['deleted', 'deleted'],
  ['blocked', 'blocked'],
  ['no-account', 'failed'],
  ['not-linked', 'failed'],
  ['registration-closed', 'failed'],
  ['email-unverified', 'unverified'],
  ['verification-sent', 'unverified'],
])('a login that ends as %s counts as %s', async (result, outcome) => {
  const ended = { result };
  expect(await counted(ACME, Promise.resolve(ended))).toBe(ended);
  expect(recorded).toEqual([['account_logins_total', 'acme', outcome, 1]]);
});

test('a result that is no login is not counted', async () => {
  await counted(ACME, Promise.resolve({ result: 'linked' }));
  const isLogin = ({ result }: { result: string }) => result !== 'failed';
  await counted(ACME, Promise.resolve({ result: 'failed' }), isLogin);
  expect(recorded).toEqual([]);
  await counted(ACME, Promise.resolve({ result: 'cancelled' }), isLogin);
  expect(recorded).toEqual([['account_logins_total', 'acme', 'cancelled', 1]]);
});

test.each<[LoginMethod, ErrorCode | undefined, string | undefined]>([
  ['password', 'INVALID_CREDENTIALS', 'wrong_password'],
  ['passkey', 'INVALID_CREDENTIALS', 'wrong_passkey'],
  ['password', 'EMAIL_NOT_VERIFIED', 'unverified'],
  ['password', 'ACCOUNT_DELETED', 'deleted'],
  ['password', 'ACCOUNT_BLOCKED', 'blocked'],
  ['password', 'RATE_LIMITED', 'limited'],
  ['password', 'SERVICE_UNAVAILABLE', 'unavailable'],
  ['password', 'EMAIL_TAKEN', 'failed'],
  ['password', undefined, 'failed'],
  // Without a pending login there is none to count.
  ['totp', 'UNAUTHENTICATED', undefined],
])('a login by %s that rejects with %s counts as %s', async (method, code, outcome) => {
  const error = code ? new ServiceError(code) : new Error('a fault');
  await expect(counted(method, Promise.reject(error))).rejects.toBe(error);
  expect(recorded).toEqual(outcome ? [['account_logins_total', method, outcome, 1]] : []);
});

test('every count is exported from the start, as 0', () => {
  prepareLoginCounts([ACME]);
  const methods = ['password', 'passkey', 'totp', 'recovery', 'acme'];
  const outcomes =
    'success second_factor wrong_password wrong_passkey wrong_code unverified deleted blocked limited unavailable cancelled failed';
  const expected = methods.flatMap((method) =>
    outcomes.split(' ').map((outcome) => ['account_logins_total', method, outcome, 0]),
  );
  expect(recorded).toEqual(expected);
});
