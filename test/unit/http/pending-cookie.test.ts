import { expect, test } from 'vitest';
import { readPendingCookie } from '../../../server/http/cookies/pending.ts';
import { newToken } from '../../../server/lib/random-token.ts';

const config = { secureCookies: false };

test('only a token is a pending login', () => {
  const token = newToken();
  expect(readPendingCookie(`auth_pending=${token}`, config)).toBe(token);
  for (const header of [
    undefined,
    'auth_pending=',
    'auth_pending=something',
    `auth_pending=${token}x`,
    `other=${token}`,
  ])
    expect(readPendingCookie(header, config)).toBeUndefined();
});
