import { expect, test, vi } from 'vitest';
import { createReplayCheck, unexpired } from '../../../server/oauth/short-lived.ts';

/** The library accepts a proof from five minutes before its `iat` to five minutes after. */
const ACCEPTED_SECONDS = 2 * 5 * 60;

test('a used proof is remembered for longer than it is accepted', () => {
  const counter = vi.fn();
  createReplayCheck({ counter } as never);
  expect(counter).toHaveBeenCalledExactlyOnceWith({ name: 'oauth:dpop', points: 1, seconds: expect.any(Number) });
  expect(counter.mock.calls[0]?.[0].seconds).toBeGreaterThan(ACCEPTED_SECONDS);
});

test('what a storage returns is valid by a clock that is ahead, and keeps a later expiry', () => {
  const now = Date.now() / 1000;
  expect(unexpired({ iat: now - 700, exp: now - 600 }).exp).toBeGreaterThan(now);
  expect(unexpired({ exp: now + 600 })).toEqual({ exp: now + 600 });
  expect(unexpired({ iat: now })).toEqual({ iat: now });
});
