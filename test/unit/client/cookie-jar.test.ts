import { cookieJar, type SavedCookie } from 'account-client';
import { afterEach, describe, expect, test, vi } from 'vitest';

const SERVICE = 'https://accounts.example.com/trpc/x';

/** A jar whose service answers each request with the next of these lists of Set-Cookie lines. */
function jarWith(answers: string[][], options: { saved?: SavedCookie[]; onChange?: () => void } = {}) {
  const requests: { cookie: string | null; init: RequestInit | undefined }[] = [];
  const jar = cookieJar({
    ...options,
    fetch: async (_, init) => {
      requests.push({ cookie: new Headers(init?.headers).get('cookie'), init });
      return new Response('{}', {
        headers: (answers.shift() ?? []).map((line): [string, string] => ['set-cookie', line]),
      });
    },
  });
  return { jar, requests };
}

/** The cookies sent to one URL after another has set these lines. */
async function sentTo(address: string, lines: string[], from = SERVICE): Promise<string> {
  const { jar } = jarWith([lines]);
  await jar.fetch(from);
  return jar.header(address);
}

afterEach(() => void vi.useRealTimers());

test('sends the cookies of the service, with the headers of the call, until they are cleared', async () => {
  const login = [
    'auth_session=abc; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure',
    'auth_device=d.1; Path=/',
  ];
  const { jar, requests } = jarWith([login, [], ['auth_session=; Path=/; Max-Age=0'], []]);
  for (let i = 0; i < 4; i++) await jar.fetch(SERVICE, { headers: { 'x-a': '1' } });
  expect(requests.map(({ cookie }) => cookie)).toEqual([
    null,
    'auth_session=abc; auth_device=d.1',
    'auth_session=abc; auth_device=d.1',
    'auth_device=d.1',
  ]);
  expect(requests.map(({ init }) => [new Headers(init?.headers).get('x-a'), init?.credentials])).toEqual(
    Array(4).fill(['1', 'omit']),
  );
  jar.clear();
  expect(jar.header(SERVICE)).toBe('');
});

describe('a cookie', () => {
  test.each<[string, string, string, string]>([
    ['of a host', 'a=1; Path=/', 'https://accounts.example.com/any/path?x', 'a=1'],
    ['of a host, at another port', 'a=1; Path=/', 'https://accounts.example.com:8443/', 'a=1'],
    ['of a host, at a host below it', 'a=1; Path=/', 'https://x.accounts.example.com/', ''],
    ['of a host, at the one above it', 'a=1; Path=/', 'https://example.com/', ''],
    ['of another host', 'a=1; Path=/', 'https://evil.test/', ''],
    ['of a host whose name only ends like it', 'a=1; Path=/', 'https://evilaccounts.example.com/', ''],
    ['of a domain', 'a=1; Path=/; Domain=example.com', 'https://app.example.com/', 'a=1'],
    ['of a domain with a dot in front', 'a=1; Path=/; Domain=.EXAMPLE.com', 'https://app.example.com/', 'a=1'],
    ['of a domain, at the domain itself', 'a=1; Path=/; Domain=example.com', 'https://example.com/', 'a=1'],
    ['of a domain, at one that only ends like it', 'a=1; Domain=example.com', 'https://evilexample.com/', ''],
    ['of its own host as a domain', 'a=1; Domain=accounts.example.com', 'https://x.accounts.example.com/', 'a=1'],
    ['of another domain', 'a=1; Path=/; Domain=evil.test', 'https://evil.test/', ''],
    ['of a domain below', 'a=1; Domain=x.accounts.example.com', 'https://x.accounts.example.com/', ''],
    ['of a top-level domain', 'a=1; Path=/; Domain=com', 'https://evil.com/', ''],
    ['of a path', 'a=1; Path=/trpc', 'https://accounts.example.com/trpc/x', 'a=1'],
    ['of another path', 'a=1; Path=/trpc', 'https://accounts.example.com/trpcx', ''],
    ['that is secure, over http', 'a=1; Path=/; Secure', 'http://accounts.example.com/', ''],
    ['that is not, over http', 'a=1; Path=/', 'http://accounts.example.com/', 'a=1'],
    ['with spaces and signs in it', ' a = x=y "z" ; path=/ ; SECURE', 'https://accounts.example.com/', 'a=x=y "z"'],
    ['without a name', '=1; Path=/', 'https://accounts.example.com/', ''],
    ['without a value', 'a=; Path=/', 'https://accounts.example.com/', 'a='],
    ['that is a flag', 'a; Path=/', 'https://accounts.example.com/', ''],
    ['of more than 4 kB', `a=${'x'.repeat(4096)}`, 'https://accounts.example.com/', ''],
    ['that is over by its age', 'a=1; Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT', SERVICE, ''],
    ['that is over by its age below zero', 'a=1; Max-Age=-1', SERVICE, ''],
    ['that is over by its date', 'a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT', SERVICE, ''],
    ['whose age counts, not its date', 'a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT', SERVICE, 'a=1'],
    ['with an invalid date', 'a=1; Expires=soon', SERVICE, 'a=1'],
  ])('%s', async (_, line, address, sent) => {
    expect(await sentTo(address, [line])).toBe(sent);
  });

  test.each([
    ['http://localhost:3000/', 'a=1'],
    ['http://127.0.0.1:3000/', 'a=1'],
    ['http://[::1]:3000/', 'a=1'],
    ['http://accounts.example.com/', ''],
  ])('that is secure, set at %s', async (address, sent) => {
    expect(await sentTo(address, ['a=1; Path=/; Secure'], address)).toBe(sent);
  });

  test('is not sent outside its path', async () => {
    expect(await sentTo('http://10.1.2.3/', ['a=1; Domain=2.3'], 'http://10.1.2.3/')).toBe('');
  });

  test('replaces the one with the same name, host and path only', async () => {
    const lines = ['a=1; Path=/', 'a=2; Path=/', 'a=3; Path=/; Domain=example.com', 'a=4; Path=/trpc'];
    expect(await sentTo(SERVICE, lines)).toBe('a=2; a=3; a=4');
  });

  test('of the domain remains when that of the host is cleared', async () => {
    const lines = ['a=1; Path=/; Domain=accounts.example.com; Max-Age=60', 'a=; Path=/; Max-Age=0'];
    expect(await sentTo(SERVICE, lines)).toBe('a=1');
  });

  test('expires', async () => {
    vi.useFakeTimers({ now: 0 });
    const { jar } = jarWith([['a=1; Max-Age=60', 'b=2; Expires=Thu, 01 Jan 1970 00:02:00 GMT']]);
    await jar.fetch(SERVICE);
    vi.setSystemTime(59_999);
    expect(jar.header(SERVICE)).toBe('a=1; b=2');
    vi.setSystemTime(60_000);
    expect(jar.header(SERVICE)).toBe('b=2');
    vi.setSystemTime(120_000);
    expect([jar.header(SERVICE), jar.toJSON()]).toEqual(['', []]);
  });
});

test('is saved as JSON and restored, without session cookies', async () => {
  const changes: string[] = [];
  const { jar } = jarWith([['a=1; Max-Age=60; Secure', 'b=2'], [], ['a=; Max-Age=0']], {
    onChange: () => changes.push(JSON.stringify(jar)),
  });
  for (let i = 0; i < 3; i++) await jar.fetch(SERVICE);
  expect(changes).toHaveLength(2);
  const saved = JSON.parse(changes[0] ?? '[]') as SavedCookie[];
  expect(saved).toMatchObject([{ name: 'a', value: '1', domain: 'accounts.example.com', secure: true }]);
  expect(jarWith([], { saved }).jar.header(SERVICE)).toBe('a=1');
  expect(changes[1]).toBe('[]');
});

test('reads combined Set-Cookie lines', async () => {
  const joined = 'a=1; Expires=Fri, 01 Jan 2100 00:00:00 GMT; Path=/, b=2; Path=/,c=3';
  const headers = new Headers({ 'set-cookie': joined });
  Object.defineProperty(headers, 'getSetCookie', { value: undefined });
  const response = new Response('{}');
  Object.defineProperty(response, 'headers', { value: headers });
  const jar = cookieJar({ fetch: async () => response });
  await jar.fetch(SERVICE);
  expect(jar.header(SERVICE)).toBe('a=1; b=2; c=3');
});
