import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isNetworkError } from 'account-client';
import { type AccountsOptions, createAccounts } from 'account-client/server';
import Koa from 'koa';
import { afterEach, describe, expect, test } from 'vitest';

const WEEK = 7 * 24 * 3600;
const token = 'x'.repeat(43);
const url = 'https://accounts.example.com';

/** A service with one session, renewed by this use or not; with `scopes` a key. Undefined: it cannot be reached. */
function service(session: { fresh: boolean; scopes?: string[] } | undefined, options: Partial<AccountsOptions> = {}) {
  const calls: string[] = [];
  const accounts = createAccounts({
    url,
    token: 'secret',
    ...options,
    fetch: async (address, init) => {
      if (!session) throw new TypeError('offline');
      calls.push(new URL(String(address)).pathname);
      if (calls.at(-1) === '/trpc/auth.logout') {
        expect(new Headers(init?.headers).get('cookie')).toBe(`auth_session=${token}`);
        const headers = [
          ['Set-Cookie', 'auth_session=; Max-Age=0'],
          ['Set-Cookie', 'auth_device=1'],
        ] as [string, string][];
        return Response.json([{ result: { data: { success: true } } }], { headers });
      }
      const [input] = Object.values<{ token: string }>(JSON.parse(String(init?.body)));
      const times = { createdAt: 1, expiresAt: Math.floor(Date.now() / 1000) + WEEK };
      const data = input?.token === token ? { user: { id: 'user_1' }, session: times, ...session } : null;
      return Response.json([{ result: { data } }]);
    },
  });
  return { ...accounts, calls };
}

const cookie = `a=1; auth_session=${token}`;
const arrival = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' };

type Kit = ReturnType<typeof service>;

/** A handler in each kind of server, which answers with the id of the user and a cookie of its own. */
const servers: Record<string, (kit: Kit) => (headers: Record<string, string>, method?: string) => Promise<Response>> = {
  answer: (kit) => (headers, method) => {
    const request = new Request('https://app.example.com/', { headers, method: method ?? 'GET' });
    return kit.answer(request, async () => {
      const session = await kit.sessionOf(request);
      return new Response(session?.user.id ?? 'nobody', { headers: { 'Set-Cookie': 'own=1' } });
    });
  },
  hono: (kit) => async (headers, method) => {
    const raw = new Request('https://app.example.com/', { headers, method: method ?? 'GET' });
    const res = new Response();
    const context = {
      req: { raw },
      res,
      header: (name: string, value: string) => res.headers.append(name, value),
    };
    let body = '';
    const answered = await kit.hono(context, async () => {
      res.headers.append('Set-Cookie', 'own=1');
      body = (await kit.sessionOf(raw))?.user.id ?? 'nobody';
    });
    return answered ?? new Response(body, { headers: res.headers });
  },
  express: (kit) =>
    served((request, response) => kit.express(request, response, () => void show(kit, request, response))),
  nuxt: (kit) =>
    served(async (request, response) => {
      await kit.nuxt({ node: { req: request, res: response } });
      if (!response.writableEnded) await show(kit, request, response);
    }),
  koa: (kit) => {
    const app = new Koa();
    app.use(kit.koa);
    app.use(async (ctx) => {
      ctx.append('Set-Cookie', 'own=1');
      ctx.body = (await kit.sessionOf(ctx.req))?.user.id ?? 'nobody';
    });
    return served(app.callback());
  },
};

async function show(kit: Kit, request: IncomingMessage, response: ServerResponse) {
  const session = await kit.sessionOf(request);
  response.appendHeader('Set-Cookie', 'own=1');
  response.end(session?.user.id ?? 'nobody');
}

const stops: (() => unknown)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function served(listener: (request: IncomingMessage, response: ServerResponse) => unknown) {
  return async (headers: Record<string, string>, method = 'GET') => {
    const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1');
    stops.push(() => server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    // fetch would set Sec-Fetch-* itself.
    return requestTo((server.address() as AddressInfo).port, headers, method);
  };
}

async function requestTo(port: number, headers: Record<string, string>, method: string): Promise<Response> {
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', headers, method }, async (answer) => {
      const found = new Headers();
      for (const [name, value] of Object.entries(answer.headersDistinct))
        for (const line of value ?? []) found.append(name, line);
      resolve(new Response(Buffer.concat(await answer.toArray()), { headers: found, status: answer.statusCode ?? 0 }));
    })
      .on('error', reject)
      .end();
  });
}

describe.each(Object.keys(servers))('%s', (name) => {
  const start = (kit: Kit) => servers[name]?.(kit) ?? expect.unreachable();

  test('passes the session on by one check, and sets the cookie of a renewed one beside those of the handler', async () => {
    const kit = service({ fresh: true });
    const response = await start(kit)({ cookie });
    expect(await response.text()).toBe('user_1');
    expect(kit.calls).toEqual(['/trpc/service.session']);
    const lines = response.headers.getSetCookie();
    expect(lines).toHaveLength(2);
    expect(lines).toContain('own=1');
    const [, seconds] =
      lines.join('\n').match(/^auth_session=x{43}; Max-Age=(\d+); Path=\/; HttpOnly; SameSite=Strict; Secure$/m) ??
      expect.unreachable(lines.join());
    expect(WEEK - Number(seconds)).toBeLessThan(60);
    expect(response.headers.get('cache-control')).toBe('no-store');
  });

  test.each([
    ['a session that is not renewed', { fresh: false }, { cookie }, 'user_1'],
    ['no cookie', { fresh: true }, {}, 'nobody'],
    ['a key in place of a session', { fresh: true, scopes: ['uploads:read'] }, { cookie }, 'nobody'],
    ['two cookies of the name', { fresh: true }, { cookie: `${cookie}; auth_session=y` }, 'nobody'],
    ['a cookie after a link from another site', { fresh: false }, { cookie, ...arrival }, 'user_1'],
    ['a picture in a page of another site', { fresh: false }, { ...arrival, 'sec-fetch-dest': 'image' }, 'nobody'],
  ])('sets no cookie for %s', async (_, session, headers, user) => {
    const response = await start(service(session))(headers);
    expect([await response.text(), response.headers.getSetCookie()]).toEqual([user, ['own=1']]);
  });

  test('answers the first arrival from another site by a page that loads itself again, but no form', async () => {
    const kit = service({ fresh: true });
    const send = start(kit);
    const response = await send(arrival);
    expect(await response.text()).toContain('<meta http-equiv="refresh" content="0">');
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(await (await send(arrival, 'POST')).text()).toBe('nobody');
    expect(kit.calls).toEqual([]);
  });
});

test('a page without a session is shown while the service is away; what asks for the session learns it', async () => {
  const kit = service(undefined);
  const request = new Request('https://app.example.com/', { headers: { cookie } });
  expect(await (await kit.answer(request, () => new Response('public'))).text()).toBe('public');
  await expect(kit.sessionOf(request)).rejects.toSatisfy(isNetworkError);
});

test.each([
  ['a logout', 'auth_session=; Max-Age=0'],
  ['a new session', 'auth_session=new'],
])('the cookie of %s stays', async (_, line) => {
  const request = new Request('https://app.example.com/', { headers: { cookie }, method: 'POST' });
  const headers = { 'Set-Cookie': line };
  const answered = await service({ fresh: true }).answer(request, () => new Response('', { headers }));
  expect(answered.headers.getSetCookie()).toEqual([line]);
  const res = new Response('', { headers });
  await service({ fresh: true }).hono(
    { req: { raw: request }, res, header: expect.unreachable },
    async () => undefined,
  );
});

test('a redirect takes the cookie too', async () => {
  const request = new Request('https://app.example.com/', { headers: { cookie } });
  const response = await service({ fresh: true }).answer(request, () =>
    Response.redirect('https://app.example.com/a', 303),
  );
  expect([response.status, response.headers.get('location')]).toEqual([303, 'https://app.example.com/a']);
  expect(response.headers.getSetCookie()).toHaveLength(1);
});

test('takes only headers, and the domain of the cookie', async () => {
  const kit = service({ fresh: true }, { cookieDomain: 'example.com', url: 'http://accounts.example.com' });
  expect((await kit.sessionOf(new Headers({ cookie })))?.user.id).toBe('user_1');
  expect((await kit.sessionOf({ headers: { cookie: ['a=1', `auth_session=${token}`] } }))?.user.id).toBe('user_1');
  const request = new Request('https://app.example.com/', { headers: { cookie } });
  const response = await kit.answer(request, () => new Response(''));
  expect(response.headers.get('set-cookie')).toMatch(/; SameSite=Strict; Domain=example.com$/);
});

test('the client of a request passes the cookies of the service on', async () => {
  const lines: string[] = [];
  const client = service({ fresh: false }).clientOf({ headers: { cookie: `auth_session=${token}` } }, (line) =>
    lines.push(line),
  );
  await client.auth.logout.mutate();
  expect(lines).toEqual(['auth_session=; Max-Age=0', 'auth_device=1']);
});
