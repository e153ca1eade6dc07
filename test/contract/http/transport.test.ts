import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { inTime, until } from '../../rig/until.ts';
import { callerOf, paths } from '../rig/callers.ts';
import { relyingParty } from '../rig/relying-party.ts';
import { administrator, isAlive, loggedIn, onBothStacks, onStack, PASSWORD, verified } from '../rig/scenario.ts';

/** interface.md section 5, exactly. */
const securityHeaders = (apiHost: string) => ({
  'content-security-policy': `default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data: https:; font-src 'self'; connect-src 'self' ${apiHost}; frame-ancestors 'none'; base-uri 'self'; form-action 'self'`,
  'x-content-type-options': 'nosniff',
  'x-xss-protection': '1; mode=block',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'strict-transport-security': 'max-age=31536000; includeSubDomains; preload',
});

const posts = Object.entries(paths).filter(([, [method]]) => method !== 'GET');

onBothStacks((stack) => {
  const send = (path: string, init: RequestInit & { headers?: Record<string, string> } = {}) =>
    fetch(stack().url + path, { ...init, headers: { 'x-forwarded-for': clientAddress(), ...init.headers } });
  const json = { 'content-type': 'application/json' };
  const login = JSON.stringify({ email: 'nobody@example.test', password: PASSWORD });
  const person = () => ({ name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD });
  const countUsers = async () => (await stack().database('select count(*) as n from users'))[0]?.['n'];

  /** Sends raw bytes and resolves to everything received until the connection closes. */
  const sendRaw = (bytes: string) =>
    inTime(
      new Promise<string>((resolve, reject) => {
        const socket = connect(stack().services[0]?.port ?? 0, '127.0.0.1', () => socket.write(bytes));
        let answer = '';
        socket.on('data', (chunk) => {
          answer += chunk;
        });
        socket.on('close', () => resolve(answer));
        socket.on('error', reject);
      }),
      { within: 5000, what: 'the end of the connection' },
    );

  // The OpenID provider exists while there is an application.
  beforeAll(async () => {
    await relyingParty({ stack: stack(), call: callerOf('rest', stack().url) });
  });

  // checks: 65
  test.each<[string, string, string, number, { headers?: Record<string, string>; body?: string; times?: number }?]>([
    ['an answer', 'GET', '/api/users', 200],
    ['health', 'GET', '/api/health', 200],
    ['a probe', 'GET', '/readyz', 200],
    ['the document', 'GET', '/openapi.json', 200],
    ['its page', 'GET', '/docs', 200],
    ['a page', 'GET', '/login', 200, { headers: { accept: 'text/html' } }],
    ['a missing page', 'GET', '/nope', 404, { headers: { accept: 'text/html' } }],
    ['a redirect', 'GET', '/auth/idp', 302],
    ['a refused redirect', 'GET', '/auth/idp/callback', 400],
    ['a HEAD', 'HEAD', '/api/users', 200],
    ['a HEAD to a redirect', 'HEAD', '/auth/idp', 204],
    [
      'a preflight',
      'OPTIONS',
      '/auth/login',
      204,
      { headers: { origin: 'ours', 'access-control-request-method': 'POST' } },
    ],
    ['a refused preflight', 'OPTIONS', '/auth/login', 404, { headers: { 'access-control-request-method': 'POST' } }],
    ['a refused login', 'POST', '/auth/login', 400],
    ['one login too many', 'POST', '/auth/login', 429, { headers: json, body: login, times: 6 }],
    ['another site', 'POST', '/auth/login', 403, { headers: { origin: 'https://evil.test' } }],
    ['a body of another type', 'POST', '/auth/login', 415, { headers: { 'content-type': 'text/plain' }, body: login }],
    ['a body that is too large', 'POST', '/auth/login', 413, { headers: json, body: 'x'.repeat(200_000) }],
    ['a broken body', 'POST', '/trpc/auth.login', 400, { headers: json, body: '{' }],
    ['no session', 'GET', '/api/profile', 401],
    ['no session over /trpc', 'GET', '/trpc/profile.get', 401],
    ['no session for an image', 'POST', '/api/upload/image', 401, { headers: json, body: login }],
    ['nothing there', 'GET', '/nope', 404],
    ['a file that is not there', 'GET', '/uploads/x.png', 404],
    ['an unknown procedure', 'GET', '/trpc/nope', 404],
    ['an odd method', 'DELETE', '/api/profile', 404],
    ['a file without a signature', 'GET', '/private/x.png', 403],
    ['no key for the feed', 'GET', '/api/events', 401],
    ['the metadata of the OpenID provider', 'GET', '/.well-known/openid-configuration', 200],
    ['its keys', 'GET', '/oauth/jwks', 200],
    ['a refused request for tokens', 'POST', '/oauth/token', 400],
    [
      'a refused authorization request',
      'GET',
      '/oauth/authorize?client_id=x',
      400,
      { headers: { accept: 'text/html' } },
    ],
  ])(
    '%s carries every security header and reveals no software',
    async (_, method, path, status, { headers: own, body, times = 1 } = {}) => {
      const { origin, host } = new URL(stack().appUrl);
      const address = clientAddress();
      const init = {
        method,
        redirect: 'manual' as const,
        headers: { ...own, 'x-forwarded-for': address, ...(own?.['origin'] === 'ours' && { origin }) },
        ...(body !== undefined && { body }),
      };
      for (let i = 1; i < times; i++) await send(path, init);
      const response = await send(path, init);
      expect(response.status).toBe(status);
      const headers = Object.fromEntries(response.headers);
      expect(headers).toMatchObject(securityHeaders(host));
      for (const name of ['x-powered-by', 'server', 'via']) expect(headers).not.toHaveProperty(name);
      const text = await response.text();
      if (/^[[{]/.test(text))
        expect(headers['content-type']).toMatch(/^application\/(?:jwk-set\+)?json; charset=utf-8$/);
      // A page is not an error.
      if (status < 400 || own?.['accept']) return;
      expect(Object.keys(JSON.parse(text))).not.toContain('stack');
      expect(text).not.toMatch(/node_modules|\bat \S+:\d+/);
    },
  );

  // checks: 66
  test.each([
    [
      'a content length and chunks',
      'POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    [
      'two content lengths',
      'POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd',
      400,
    ],
    [
      'an odd transfer encoding',
      'POST /auth/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['no host', 'GET /api/health HTTP/1.1\r\n\r\n', 400],
    ['a target that is no address', 'GET http://[/ HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['20 kB of headers', `GET /api/health HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    ['no HTTP at all', 'hello\r\n\r\n', 400],
  ])('a request with %s is refused and its connection is closed', async (_, bytes, status) => {
    const answer = await sendRaw(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    for (const [name, value] of Object.entries(securityHeaders(new URL(stack().appUrl).host))) {
      expect(answer.toLowerCase()).toContain(`${name}: ${value}`.toLowerCase());
    }
    expect((await send('/api/health')).status).toBe(200);
  });

  test('the refusal of what is no HTTP says so by the name of its status', async () => {
    expect(await sendRaw('hello\r\n\r\n')).toContain('{"message":"Bad Request","code":"VALIDATION_FAILED"');
  });

  /** The status of each answer on a connection. */
  const statusesOf = (answers: string) =>
    [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  const rawPost = (path: string, fields: object) => {
    const body = JSON.stringify(fields);
    return `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${clientAddress()}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const brokenBody =
    'POST /auth/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';

  test.each<[string, string, number[]]>([
    ['what is no HTTP', 'hello\r\n\r\n', [400]],
    ['what is no HTTP, in pieces', 'hello\r\n\r\n'.repeat(10_000), [400]],
    ['20 kB of headers', `GET /livez HTTP/1.1\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, [431]],
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', [404]],
    ['a request with a broken body', brokenBody, [400]],
    ['a request, and what is no HTTP', 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\nhello\r\n\r\n', [200, 400]],
  ])('a request followed by %s gets its own answer, and the next one gets its own too', async (_, next, statuses) => {
    for (const [path, status] of [
      ['/auth/register', 201],
      ['/trpc/auth.register', 200],
    ] as const) {
      const account = person();
      const answers = await sendRaw(rawPost(path, account) + next);
      expect(statusesOf(answers)).toEqual([status, ...statuses]);
      expect(await stack().database('select email from users where email = ?', [account.email])).toHaveLength(1);
    }
  });

  test('a body that breaks before its turn stops the request; one that breaks later gets the answer in progress', async () => {
    const call = callerOf('rest', stack().url);
    const { session } = await loggedIn({ stack: stack(), call });
    const logout = brokenBody
      .replace('/auth/register', '/auth/logout')
      .replace('Host: x', `Host: x\r\nCookie: auth_session=${session}`);
    expect(statusesOf(await sendRaw(logout))).toEqual([400]);
    expect(await isAlive(call, session)).toBe(true);

    const [head = '', broken = ''] = logout.split(/(?<=\r\n\r\n)/);
    const socket = connect(stack().services[0]?.port ?? 0, '127.0.0.1');
    let answers = '';
    socket.on('data', (data) => {
      answers += data;
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    // The service may have closed the connection after its answer.
    socket.on('error', () => undefined);
    socket.write(head);
    await until(async () => !(await isAlive(call, session)));
    socket.write(broken);
    await closed;
    expect(statusesOf(answers)).toEqual([200]);
  });

  // checks: 24
  test.each<Record<string, string>>([
    { origin: 'https://evil.test' },
    { origin: 'null' },
    { origin: 'http://localhost.evil.test' },
    { origin: 'http://localhost' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('a request from another site changes nothing, with or without the cookie (%j)', async (foreign) => {
    const { session } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
    const everything = async () => ({
      users: await stack().database('select * from users'),
      uploads: await stack().database('select * from uploads'),
      mails: await stack().database('select count(*) as n from outbox'),
    });
    const before = await everything();
    for (const [i, [procedure, [method, path]]] of posts.entries()) {
      for (const target of [path, `/trpc/${procedure}`]) {
        const isRest = target === path;
        const response = await send(target, {
          method: isRest ? method : 'POST',
          headers: { ...json, ...foreign, ...(isRest === (i % 2 === 0) && { cookie: `auth_session=${session}` }) },
          body: JSON.stringify(person()),
        });
        expect(response.status).toBe(403);
        expect(await response.json()).toMatchObject({ code: 'ORIGIN_MISMATCH' });
        expect(response.headers.get('access-control-allow-origin')).toBeNull();
        expect(response.headers.getSetCookie()).toEqual([]);
      }
    }
    expect(await everything()).toEqual(before);
    expect(await isAlive(callerOf('rest', stack().url), session)).toBe(true);
  });

  // checks: 24
  test('a logout, like any cross-site or same-site request, fails from another site', async () => {
    const call = callerOf('rest', stack().url);
    const { session } = await loggedIn({ stack: stack(), call });
    for (const headers of [
      { origin: 'https://evil.test' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ] as const) {
      const reply = await call('auth.logout', undefined, { session, headers: { ...headers } });
      expect(reply).toMatchObject({ status: 403, code: 'ORIGIN_MISMATCH', setCookies: [] });
    }
    expect(await isAlive(call, session)).toBe(true);
    const own = { origin: new URL(stack().appUrl).origin, 'sec-fetch-site': 'same-origin' };
    expect((await call('auth.logout', undefined, { session, headers: own })).status).toBe(200);
  });

  // checks: 67
  test('other origins cannot read answers', async () => {
    const response = await send('/api/users', { headers: { origin: 'https://evil.test' } });
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    const preflight = await send('/auth/login', {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.test', 'access-control-request-method': 'POST' },
    });
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
    expect(preflight.status).toBe(403);
    const own = await send('/api/users', { headers: { origin: new URL(stack().appUrl).origin } });
    expect(own.headers.get('access-control-allow-origin')).toBe(new URL(stack().appUrl).origin);
    expect(own.headers.get('access-control-allow-credentials')).toBe('true');
  });

  // checks: 25
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', '', undefined])(
    'JSON sent as %j is refused',
    async (type) => {
      const before = await countUsers();
      const statusOf = async (path: string, fields: object = person(), method = 'POST', cookie = '') => {
        const body = new TextEncoder().encode(JSON.stringify(fields));
        return (
          await send(path, { method, headers: { cookie, ...(type !== undefined && { 'content-type': type }) }, body })
        ).status;
      };
      const { session, id, name } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
      const change = () => statusOf('/api/profile', { name: 'Mallory' }, 'PUT', `auth_session=${session}`);
      expect(await statusOf('/auth/register')).toBe(415);
      expect(await statusOf('/trpc/auth.register')).toBe(415);
      expect(await statusOf('/auth/login')).toBe(415);
      expect(await change()).toBe(415);
      expect(await stack().database('select name from users where id = ?', [id])).toEqual([{ name }]);
      // The logged-in one.
      expect(await countUsers()).toBe(Number(before) + 1);
    },
  );

  test('a content type may have a charset', async () => {
    const response = await send('/auth/register', {
      method: 'POST',
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify(person()),
    });
    expect(response.status).toBe(201);
  });

  test.each([
    ['nothing', ''],
    ['half an object', '{"email":'],
    ['a list', '[]'],
    ['a number', '1'],
    ['null', 'null'],
    ['text', '"x"'],
    ['a list in a list, 40,000 deep', `${'['.repeat(40_000)}`],
  ])('a body of %s is refused', async (_, body) => {
    for (const path of ['/auth/register', '/trpc/auth.register']) {
      const response = await send(path, { method: 'POST', headers: json, body });
      expect(response.status).toBe(400);
      const text = await response.text();
      expect(text).toContain('VALIDATION_FAILED');
      expect(text).not.toMatch(/\bat \S+:\d+/);
    }
  });

  test('a list instead of an object is refused as such; an undecodable path, and the pattern of a path, are 404', async () => {
    const list = await send('/auth/register', { method: 'POST', headers: json, body: '[]' });
    expect(await list.json()).toMatchObject({
      code: 'VALIDATION_FAILED',
      details: { body: { message: 'Must be a JSON object', rule: 'invalid_type' } },
    });
    for (const path of ['/api/users/%zz', '/api/users/*', '/api/users/*/activity']) {
      const response = await send(path);
      expect([response.status, await response.json()]).toEqual([404, { message: 'Not found', code: 'NOT_FOUND' }]);
    }
  });

  test('a parameter of the path counts, not a field of the body with its name', async () => {
    const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
    const { session } = await administrator(scenario);
    const [named, other] = [await verified(scenario), await verified(scenario)];
    const headers = { ...json, cookie: `auth_session=${session}` };
    const body = JSON.stringify({ id: other.id, role: 'admin' });
    expect((await send(`/api/users/${named.id}/role`, { method: 'POST', headers, body })).status).toBe(200);
    const rows = await stack().database("select id from users where role = 'admin' and id in (?, ?)", [
      named.id,
      other.id,
    ]);
    expect(rows).toEqual([{ id: named.id }]);
  });

  /** Added to an otherwise valid registration. */
  const besideARegistration = async (path: string, more: string) => {
    const account = person();
    const body = `${more.slice(0, -1)},${JSON.stringify(account).slice(1)}`;
    const { status } = await send(path, { method: 'POST', headers: json, body });
    const rows = await stack().database('select role, email_verified from users where email = ?', [account.email]);
    return { status, rows };
  };
  const plainUser = [{ role: 'user', email_verified: 0 }];

  // checks: 6
  test.each([
    ['10,000 keys', `{${Array.from({ length: 10_000 }, (_, i) => `"k${i}":1`).join()}}`],
    ['a constructor', '{"constructor":{"prototype":{"emailVerified":true,"role":"admin"}}}'],
  ])('%s beside the documented fields change nothing', async (_, more) => {
    expect(await besideARegistration('/auth/register', more)).toEqual({ status: 201, rows: plainUser });
    expect(await besideARegistration('/trpc/auth.register', more)).toEqual({ status: 200, rows: plainUser });
  });

  // checks: 6
  test('a prototype property beside the documented fields is refused', async () => {
    const prototype = '{"__proto__":{"emailVerified":true,"role":"admin"}}';
    for (const path of ['/auth/register', '/trpc/auth.register']) {
      expect(await besideARegistration(path, prototype)).toEqual({ status: 400, rows: [] });
    }
    const { session, id } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
    const sendWith = async (method: string, path: string, fields: string) => {
      const headers = { ...json, cookie: `auth_session=${session}` };
      return (await send(path, { method, headers, body: `${prototype.slice(0, -1)},${fields}` })).status;
    };
    const file = '"filename":"a.png","contentType":"image/png","size":10}';
    expect(await sendWith('PUT', '/api/profile', '"bio":"changed"}')).toBe(400);
    expect(await sendWith('POST', '/trpc/profile.update', '"bio":"changed"}')).toBe(400);
    expect(await sendWith('POST', '/api/upload/presign', file)).toBe(400);
    expect(await sendWith('POST', '/trpc/upload.presign', file)).toBe(400);
    const rows = await stack().database('select bio, role from users where id = ?', [id]);
    expect(rows).toEqual([{ bio: null, role: 'user' }]);
    // Nor is the next request affected.
    expect(await besideARegistration('/auth/register', '{"k":1}')).toEqual({ status: 201, rows: plainUser });
  });

  // checks: 33
  test('a body over 100 kB is refused, announced or not, compressed or not', async () => {
    const body = JSON.stringify({ ...person(), bio: 'x'.repeat(200_000) });
    const chunks = async function* () {
      for (let i = 0; i < body.length; i += 10_000) yield new TextEncoder().encode(body.slice(i, i + 10_000));
    };
    const attempts: [string, RequestInit & { duplex?: 'half'; headers: Record<string, string> }][] = [
      ['/auth/register', { headers: json, body }],
      ['/trpc/auth.register', { headers: json, body }],
      ['/auth/register', { headers: json, body: ReadableStream.from(chunks()), duplex: 'half' }],
      ['/trpc/auth.register', { headers: json, body: ReadableStream.from(chunks()), duplex: 'half' }],
      ['/auth/register', { headers: { ...json, 'content-encoding': 'gzip' }, body: gzipSync(body) }],
    ];
    for (const [path, init] of attempts) {
      const response = await send(path, { method: 'POST', ...init });
      expect(response.status).toBe(413);
      expect(await response.text()).toContain('PAYLOAD_TOO_LARGE');
    }
  });

  test.each(['gzip', 'br', 'deflate'])('a body that is not %s is refused', async (encoding) => {
    const headers = { ...json, 'content-encoding': encoding };
    const response = await send('/auth/login', { method: 'POST', headers, body: 'nothing packed' });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'VALIDATION_FAILED' });
  });

  test('text of the caller is not written into the log', async () => {
    await send('/trpc/ada@example.test');
    await send('/ada@example.test?token=secret-token');
    await send('/livez');
    expect(stack().services[0]?.output()).not.toMatch(/ada@example|secret-token/);
  });

  test('an Accept header over 500 characters is ignored', async () => {
    const typeFor = async (accept: string) =>
      (await send('/nope', { headers: { accept } })).headers.get('content-type');
    expect(await typeFor('text/html'.padEnd(500, ','))).toBe('text/html; charset=utf-8');
    expect(await typeFor('text/html'.padEnd(501, ','))).toBe('application/json; charset=utf-8');
  });

  test('an answer for one origin is not cached for another', async () => {
    for (const path of ['/api/health', '/trpc/health']) {
      expect((await send(path)).headers.get('vary')).toContain('Origin');
    }
  });

  test('a call cannot request a stream, where refusals would look like answers', async () => {
    const response = await send('/trpc/profile.get', { headers: { 'trpc-accept': 'application/jsonl' } });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { data: { code: 'UNAUTHENTICATED' } } });
  });

  // checks: 17
  test('two hundred logins in one batch are refused', async () => {
    const { email, password } = person();
    const names = Array(200).fill('auth.login').join(',');
    const input = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [i, { email, password }]));
    const response = await send(`/trpc/${names}?batch=1`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(input),
    });
    expect(response.status).toBe(400);
    expect(await response.text()).not.toMatch(/INVALID_CREDENTIALS|RATE_LIMITED/);
  });

  // checks: 17
  test('each login of a batch counts', async () => {
    const { email, password } = person();
    const names = Array(10).fill('auth.login').join(',');
    const input = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [i, { email, password }]));
    const response = await send(`/trpc/${names}?batch=1`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(input),
    });
    const answers = (await response.json()) as { error: { data: { code: string } } }[];
    const codes = answers.map(({ error }) => error.data.code).sort();
    expect(codes).toEqual([...Array(5).fill('INVALID_CREDENTIALS'), ...Array(5).fill('RATE_LIMITED')]);
  });

  // checks: 67
  test.each(['TRACE', 'DELETE', 'PATCH', 'PUT', 'HEAD', 'GET', 'POST'])(
    '%s with another method changes nothing',
    async (method) => {
      const call = callerOf('rest', stack().url);
      const { session, id } = await loggedIn({ stack: stack(), call });
      const own = Object.values(paths).filter(([of]) => of === method.replace('HEAD', 'GET'));
      // Also with a word instead of a parameter.
      const patterns = own.map(([, path]) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`));
      const others = Object.values(paths).filter(([, path]) => !patterns.some((pattern) => pattern.test(path)));
      const before = await stack().database('select * from users order by id');
      for (const [, path] of others) {
        const target = path.replace('{id}', id).replace('{provider}', 'idp').replace('{name}', 'x');
        const { status } = await ask(stack().url + target, {
          method,
          headers: { ...json, cookie: `auth_session=${session}` },
          body: method === 'TRACE' ? '' : JSON.stringify(person()),
        });
        expect([target, status]).toEqual([target, 404]);
      }
      expect(await stack().database('select * from users order by id')).toEqual(before);
      expect(await isAlive(call, session)).toBe(true);
    },
  );

  test('HEAD answers like GET, without a body', async () => {
    const response = await send('/api/users', { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
  });

  // checks: 67
  test('a GET cannot make a change', async () => {
    const before = await countUsers();
    const input = encodeURIComponent(JSON.stringify(person()));
    for (const path of [`/trpc/auth.register?input=${input}`, `/auth/register?${new URLSearchParams(person())}`]) {
      expect((await send(path)).status).toBe(404);
    }
    expect(await countUsers()).toBe(before);
  });

  test('a client that disconnects in the middle of its body holds no resources', async () => {
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const path = i % 2 ? '/auth/register' : '/trpc/auth.register';
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"name"`;
        await new Promise<void>((resolve) => {
          const socket = connect(stack().services[0]?.port ?? 0, '127.0.0.1', () =>
            socket.write(head, () => socket.destroy()),
          );
          socket.on('close', () => resolve());
        });
      }),
    );
    expect((await send('/api/health')).status).toBe(200);
  });

  test('each request has a unique id, which the log contains', async () => {
    const first = await send('/api/health');
    const second = await send('/api/health');
    const id = first.headers.get('x-request-id') ?? '';
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(second.headers.get('x-request-id')).not.toBe(id);
    expect(stack().services[0]?.output()).toContain(id);
  });

  test('the probes report liveness and readiness', async () => {
    expect(await (await send('/livez')).json()).toEqual({ status: 'ok' });
    expect(await (await send('/readyz')).json()).toEqual({ status: 'ok', database: 'ok', keyValueStore: 'ok' });
  });
});

describe('further front ends', () => {
  onStack(
    'embedded',
    (stack) => {
      test('may send requests with the cookie from their pages', async () => {
        const origin = 'https://app.example.test';
        const preflight = await fetch(`${stack().url}/auth/login`, {
          method: 'OPTIONS',
          headers: {
            origin,
            'access-control-request-method': 'POST',
            'access-control-request-headers': 'content-type',
          },
        });
        expect(preflight.status).toBe(204);
        expect(preflight.headers.get('access-control-allow-origin')).toBe(origin);
        expect(preflight.headers.get('access-control-allow-credentials')).toBe('true');
        expect(preflight.headers.get('access-control-allow-headers')).toBe('content-type');
        expect(preflight.headers.get('access-control-allow-methods')?.split(',').sort()).toEqual([
          'DELETE',
          'GET',
          'POST',
          'PUT',
        ]);
        const call = callerOf('rest', stack().url);
        const headers = { origin, 'sec-fetch-site': 'cross-site' };
        const reply = await call('auth.login', { email: freshEmail(), password: PASSWORD }, { headers });
        expect(reply.code).toBe('INVALID_CREDENTIALS');
        expect(reply.headers.get('access-control-allow-origin')).toBe(origin);
      });

      // checks: 20
      test('the cookie is shared with the configured domain, and the cookie of the host is cleared', async () => {
        const call = callerOf('rest', stack().url);
        const shared = 'auth_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0; Domain=example.test';
        const former = 'auth_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0';
        expect((await call('auth.logout')).setCookies).toEqual([shared]);
        expect((await call('auth.logout', undefined, { headers: { cookie: 'a=auth_session=b' } })).setCookies).toEqual([
          shared,
        ]);
        for (const cookie of ['auth_session=x', 'auth_session=x; auth_session=y', 'a=b; auth_session=']) {
          const { setCookies } = await call('auth.logout', undefined, { headers: { cookie } });
          expect(setCookies).toEqual([shared, former]);
        }
        const { session, ...person } = await loggedIn({ stack: stack(), call });
        expect(await isAlive(call, session)).toBe(true);
        const { setCookies } = await call('auth.login', person, { session });
        expect(setCookies).toEqual([
          expect.stringMatching(/^auth_session=[\w-]{43}; .*; Domain=example\.test$/),
          former,
          expect.stringMatching(/^auth_device=[\w.-]{87}; .*; Max-Age=34560000$/),
        ]);
      });
    },
    { env: { ALLOWED_ORIGINS: 'https://app.example.test, https://admin.example.test', COOKIE_DOMAIN: 'example.test' } },
  );
});
