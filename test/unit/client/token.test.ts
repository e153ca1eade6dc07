import { bearerTokenIn, createClient } from 'account-client';
import { expect, test } from 'vitest';

/** Records what a client sends. */
function recorded() {
  const sent: { headers: Headers; credentials: string | undefined }[] = [];
  const fetch = async (_: unknown, init?: RequestInit) => {
    sent.push({ headers: new Headers(init?.headers), credentials: init?.credentials });
    return Response.json([{ result: { data: { user: {} } } }]);
  };
  return { sent, fetch };
}

test('with a token each request has the current one, and no cookies', async () => {
  const { sent, fetch } = recorded();
  let count = 0;
  const token = async () => `token-${++count}`;
  const client = createClient({ url: 'https://accounts.example.com', fetch, token, headers: { 'x-trace': '1' } });
  await client.profile.get.query();
  await client.profile.get.query();
  expect(sent.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer token-1', 'Bearer token-2']);
  expect(sent.map(({ headers }) => headers.get('x-trace'))).toEqual(['1', '1']);
  expect(sent.map(({ credentials }) => credentials)).toEqual(['omit', 'omit']);
});

test('without a token each request has the cookies, and no Authorization', async () => {
  const { sent, fetch } = recorded();
  await createClient({ url: 'https://accounts.example.com', fetch, headers: () => ({}) }).profile.get.query();
  expect(sent[0]?.headers.has('authorization')).toBe(false);
  expect(sent[0]?.credentials).toBe('include');
});

test.each([
  ['Bearer acct_1', 'acct_1'],
  ['bearer  x.y-z', 'x.y-z'],
  ['Bearer', ''],
  ['Bearer a b', ''],
  ['Basic YTpi', ''],
  ['', ''],
  [undefined, ''],
  [null, ''],
])('the token in %j is %j', (header, token) => expect(bearerTokenIn(header)).toBe(token));
