import { randomInt } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { cpuTime } from '../../bench/measure.ts';
import { Browser } from '../../provider/browser.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { inTime, until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { expectDocumented } from '../rig/document.ts';
import { isAlive, loggedIn, onBothProcesses, PASSWORD, registered } from '../rig/scenario.ts';

/** Rules for every request. */
onBothProcesses((stack, name) => {
  const service = () => {
    const [first] = stack().services;
    if (!first) throw new Error('no service');
    return first;
  };
  const json = { 'content-type': 'application/json' };
  const send = (path: string, init: RequestInit & { headers?: Record<string, string> } = {}) =>
    fetch(stack().url + path, {
      redirect: 'manual',
      ...init,
      headers: { 'x-forwarded-for': clientAddress(), ...init.headers },
    });
  const call = () => callerOf('rest', stack().url);

  /** Sends raw bytes and resolves to everything received until the connection closes; `then` runs once they are sent. */
  const sendRaw = (bytes: string | Uint8Array, then = (_socket: Socket): unknown => undefined) =>
    inTime(
      new Promise<string>((resolve, reject) => {
        const socket = connect(service().port, '127.0.0.1');
        let answer = '';
        socket.on('data', (data) => {
          answer += data.toString();
        });
        socket.write(bytes, () => then(socket));
        socket.once('close', () => resolve(answer)).once('error', reject);
      }),
      { within: 10_000, what: 'the end of the connection' },
    );

  test.each([
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a request and CONNECT', 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\nCONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an upgrade', 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['what is no HTTP', 'hello\r\n\r\n'],
    ['a body that nobody reads', 'POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n'],
  ])('a connection that is reset after %s ends nothing else', async (_, bytes) => {
    const { pid } = service();
    for (let i = 0; i < 20; i++) {
      const socket = connect(service().port, '127.0.0.1');
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.once('data', () => socket.resetAndDestroy()).write(bytes);
      await inTime(closed, { within: 10_000, what: 'an answer' });
    }
    expect([(await send('/livez')).status, service().pid]).toEqual([200, pid]);
  });

  const cpuMs = () => cpuTime(service().pid ?? 0);

  describe('a query string', () => {
    test.each([
      ['GET', '/api/users'],
      ['GET', '/auth/idp/callback'],
      ['GET', '/trpc/users.list'],
      ['GET', '/dev/mail'],
      ['GET', '/dev/idp/auth'],
      ['PUT', '/uploads/x.png'],
      ['GET', '/nowhere'],
    ])('with thousands of names costs %s %s no more than any other', async (method, path) => {
      const query = '?a'.padEnd(15_000, '&a');
      expect((await send(path + query, { method })).status).toBe(400);
      const before = cpuMs();
      for (let i = 0; i < 5; i++) await send(path + query, { method });
      expect(cpuMs() - before).toBeLessThan(5 * 50);
    });

    test('with many names and values is parsed', async () => {
      const names = Array.from({ length: 98 }, (_, i) => `n${i}=${i}`).join('&');
      const response = await send(`/api/users?${names}&limit=1`);
      expect(response.status).toBe(200);
      expect((await send('/api/users?limit=1&limit=2')).status).toBe(400);
    });
  });

  // Before any part is used, so one stack is enough.
  if (name === 'embedded')
    describe('a long text', () => {
      /** Texts that make patterns backtrack. */
      const pieces = ['a', 'a.', 'a@', '-', ' ', '\u200b'];
      /** The maximum length of a body and of headers. */
      const inBody = (piece: string) => piece.repeat(90_000 / Buffer.byteLength(piece));
      const inHeader = (piece: string) => encodeURI(piece).repeat(15_000 / encodeURI(piece).length);
      let session: string;
      beforeAll(async () => {
        ({ session } = await loggedIn({ stack: stack(), call: call() }));
      });
      const post = (path: string, input: object, method = 'POST') =>
        send(path, {
          method,
          headers: { ...json, cookie: `auth_session=${session}` },
          body: JSON.stringify(input),
        });
      const file = { filename: 'a', contentType: 'image/png', size: 1 };
      const person = () => ({ name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD });

      // checks: 52
      test.each<[string, (piece: string) => Promise<Response>, number]>([
        ['an email to register', (piece) => post('/auth/register', { ...person(), email: inBody(piece) }), 400],
        ['an email to log in', (piece) => post('/auth/login', { ...person(), email: inBody(piece) }), 400],
        ['an email of a reset', (piece) => post('/auth/forgot-password', { email: inBody(piece) }), 200],
        ['a name', (piece) => post('/api/profile', { name: `${inBody(piece)}!` }, 'PUT'), 400],
        ['a bio', (piece) => post('/api/profile', { bio: `!${inBody(piece)}!` }, 'PUT'), 400],
        ['a website', (piece) => post('/api/profile', { website: `https://${inBody(piece)}!` }, 'PUT'), 400],
        ['an avatar', (piece) => post('/api/profile', { avatar: inBody(piece) }, 'PUT'), 400],
        ['a file name', (piece) => post('/api/upload/presign', { ...file, filename: inBody(piece) }), 400],
        ['a media type', (piece) => post('/api/upload/presign', { ...file, contentType: inBody(piece) }), 400],
        ['a token', (piece) => post('/auth/verify-email', { token: inBody(piece) }), 400],
        ['a user id', (piece) => send(`/api/users/${inHeader(piece)}`), 404],
        ['a search', (piece) => send(`/api/users?q=${inHeader(piece)}`), 400],
        ['a cookie', (piece) => send('/api/profile', { headers: { cookie: inHeader(piece) } }), 401],
        [
          'the session cookie',
          (piece) => send('/api/profile', { headers: { cookie: `auth_session=${inHeader(piece)}` } }),
          401,
        ],
        [
          'a content type',
          (piece) => send('/auth/login', { method: 'POST', headers: { 'content-type': inHeader(piece) }, body: '{}' }),
          415,
        ],
        [
          'a boundary',
          (piece) =>
            send('/api/upload/image', {
              method: 'POST',
              headers: {
                cookie: `auth_session=${session}`,
                'content-type': `multipart/form-data; boundary=${inHeader(piece)}`,
              },
              body: 'x',
            }),
          400,
        ],
        [
          'the file name of a part',
          (piece) =>
            send('/api/upload/image', {
              method: 'POST',
              headers: { cookie: `auth_session=${session}`, 'content-type': 'multipart/form-data; boundary=b' },
              body: `--b\r\nContent-Disposition: form-data; name="file"; filename="${inHeader(piece)}"\r\n\r\nx\r\n--b--\r\n`,
            }),
          400,
        ],
      ])('for %s costs under 100 ms of CPU, whatever it contains', async (_, request, status) => {
        const statusOf = async (piece: string) => (await request(piece)).status;
        expect(await statusOf('a')).toBe(status);
        const before = cpuMs();
        for (const piece of pieces) expect([piece, await statusOf(piece)]).toEqual([piece, status]);
        expect(cpuMs() - before).toBeLessThan(pieces.length * 100);
      });
    });

  test.each(['presign', 'confirm', 'parts', 'complete', 'image'])(
    '/api/upload/%s answers early refusals as documented',
    async (name) => {
      const path = `/api/upload/${name}`;
      const response = await send(`${path}${'?a'.padEnd(300, '&a')}`, { method: 'POST', headers: json, body: '{}' });
      expect(response.status).toBe(400);
      await expectDocumented(stack().url, 'POST', path, { status: 400, body: await response.json() });
    },
  );

  test.each([
    ['GET', '/api/users', {}, 200],
    ['GET', '/api/health', {}, 200],
    ['GET', '/trpc/health', {}, 200],
    ['GET', '/trpc/nope', {}, 404],
    ['GET', '/api/profile', {}, 401],
    ['GET', '/trpc/profile.get', {}, 401],
    ['GET', '/api/nope', {}, 404],
    ['GET', '/auth/nope', { accept: 'text/html' }, 404],
    ['GET', '/api', {}, 404],
    ['GET', '/auth/idp', {}, 302],
    ['GET', '/auth/idp/callback', {}, 400],
    ['POST', '/auth/login', {}, 400],
    ['POST', '/auth/login', { origin: 'https://evil.test' }, 403],
    ['POST', '/trpc/auth.login', { origin: 'https://evil.test' }, 403],
    ['POST', '/auth/login', { 'content-type': 'application/json', 'content-length': '1000000' }, 413],
    ['DELETE', '/auth/login', {}, 404],
    ['OPTIONS', '/auth/login', { origin: 'https://evil.test', 'access-control-request-method': 'POST' }, 403],
  ])('%s %s must not be cached (%j: %i)', async (method, path, headers, status) => {
    const lines = Object.entries({ Host: 'localhost', Connection: 'close', ...headers }).map((line) => line.join(': '));
    const answer = await sendRaw(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/^cache-control: no-store\r$/im);
  });

  // checks: 65
  test.each([
    ['an unknown expectation', 'POST /auth/login', ['Host: x', 'Expect: fish', 'Content-Length: 0'], 417],
    ['two hosts', 'GET /api/health', ['Host: x', 'Host: y'], 400],
    ['the same host twice', 'GET /api/health', ['Host: x', 'host: x'], 400],
    ['an open bracket for a host', 'PUT /uploads/x.png', ['Host: [', 'Content-Length: 0'], 400],
    ['a path in its host', 'GET /api/health', ['Host: x/y'], 400],
    ['a user in its host', 'GET /api/health', ['Host: app.test:x@evil.test'], 400],
    ['no name of a host', 'GET /api/health', ['Host:'], 400],
    ['TRACE to /trpc', 'TRACE /trpc/health', ['Host: x', 'Connection: close'], 404],
    ['a method of its own to /trpc', 'PURGE /trpc/health', ['Host: x', 'Connection: close'], 404],
    ['CONNECT', 'CONNECT x:443', ['Host: x'], 404],
    ['a parameter too many', `GET /api/users?${'a&'.repeat(100)}`, ['Host: x'], 400],
  ])(
    'a request with %s is refused with the standard error, and its connection is closed',
    async (_, line, headers, status) => {
      const answer = await sendRaw(`${line} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
      const [head = '', body = ''] = answer.split('\r\n\r\n');
      expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      for (const header of [
        "content-security-policy: default-src 'self'",
        'x-content-type-options: nosniff',
        'x-xss-protection: 1; mode=block',
        'x-frame-options: deny',
        'referrer-policy: strict-origin-when-cross-origin',
        'strict-transport-security: max-age=31536000; includesubdomains; preload',
        'cache-control: no-store',
        'content-type: application/json; charset=utf-8',
        'connection: close',
      ]) {
        expect(head.toLowerCase()).toContain(header);
      }
      expect(JSON.parse(body)).toEqual({ message: expect.any(String), code: expect.any(String) });
    },
  );

  test.each(['x', 'localhost:3000', '127.0.0.1', '[::1]:3000', 'a_b.example.test', 'EXAMPLE.test:'])(
    'Host: %s is accepted',
    async (host) => {
      const answer = await sendRaw(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  test('an Upgrade request is answered over HTTP/1.1', async () => {
    const answer = await sendRaw(
      'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer.toLowerCase()).toContain('strict-transport-security: ');
  });

  test('a body that is cut off at any byte is refused and logged once, without an error', async () => {
    const { session } = await loggedIn({ stack: stack(), call: call() });
    const text = Buffer.from(JSON.stringify({ name: 'Ada Lovelace', email: freshEmail(), bio: 'x'.repeat(400) }));
    const form = Buffer.from(
      `--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${'x'.repeat(500)}\r\n--b--\r\n`,
    );
    const [asJson, asForm] = ['Content-Type: application/json', 'Content-Type: multipart/form-data; boundary=b'];
    const kinds = [
      { line: 'PUT /api/profile', headers: [asJson], body: text },
      { line: 'POST /auth/register', headers: [asJson], body: text },
      { line: 'POST /trpc/auth.register', headers: [asJson], body: text },
      { line: 'POST /trpc/profile.update', headers: [asJson], body: text },
      { line: 'PUT /api/profile', headers: [asJson, 'Content-Encoding: gzip'], body: gzipSync(text, { level: 0 }) },
      { line: 'POST /api/upload/image', headers: [asForm], body: form },
      { line: 'POST /trpc/upload.image', headers: [asForm], body: form },
    ];
    const isAbout = (line: string) => kinds.some((kind) => line.includes(` ${kind.line} in `));
    const linesOf = (output: string) => output.split('\n').filter(isAbout);
    const before = service().output().length;
    const drops = Array.from({ length: 100 }, () => kinds).flat();
    for (let i = 0; i < drops.length; i += 50) {
      await Promise.all(
        drops.slice(i, i + 50).map(({ line, headers, body }, n) => {
          const head = [`${line} HTTP/1.1`, 'Host: x', `Cookie: auth_session=${session}`, ...headers];
          const start = `${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n`;
          const part = body.subarray(0, randomInt(body.length));
          if (n % 2) return sendRaw(Buffer.concat([Buffer.from(`${start}\r\n`), part]), (socket) => socket.destroy());
          // A reset discards what has not been read: it comes once the headers have been.
          return sendRaw(`${start}Expect: 100-continue\r\n\r\n`, (socket) =>
            socket.once('data', () => socket.write(part, () => socket.resetAndDestroy())),
          );
        }),
      );
    }
    const logged = await until(
      () => {
        const lines = linesOf(service().output().slice(before));
        return lines.length >= drops.length ? lines : undefined;
      },
      { what: 'a line for each request' },
    );
    expect(logged).toHaveLength(drops.length);
    expect(logged.filter((line) => !/ 4\d\d /.test(line))).toEqual([]);
    // 200 forms exceed LIMIT_UPLOAD, which is reported.
    expect(service().output().slice(before)).not.toMatch(/ERROR|WARN(?!: answered 429)/);
    expect((await send('/api/health')).status).toBe(200);
  });

  test('a refused call is in the log with its user, route and status', async () => {
    const { id, session } = await loggedIn({ stack: stack(), call: call() });
    const before = service().output().length;
    expect((await call()('users.show', { id }, { session })).status).toBe(403);
    const logged = await until(() => {
      const output = service().output().slice(before);
      return output.includes('/details') ? output : undefined;
    });
    expect(logged).toMatch(new RegExp(`^.*INFO: 403 GET /api/users/\\{id\\}/details.*"user":"${id}"`, 'm'));
  });

  test('successful probes are not logged', async () => {
    const before = service().output().length;
    for (const path of ['/livez', '/readyz', '/api/health']) expect((await send(path)).status).toBe(200);
    const logged = await until(() => {
      const output = service().output().slice(before);
      return output.includes('/api/health') ? output : undefined;
    });
    expect(logged).not.toMatch(/livez|readyz/);
  });

  test.each([
    ['from the provider', () => `${stack().appUrl}/dev/idp`],
    ['from another', () => 'https://evil.test/the-issuer'],
  ])('the log contains neither the query of a callback %s nor the cause of its error', async (_, iss) => {
    const browser = new Browser();
    const state = new URL(await browser.redirectOf(`${stack().url}/auth/idp`)).searchParams.get('state') ?? '';
    expect(state).not.toBe('');
    const query = new URLSearchParams({
      error: 'server_error',
      error_description: 'the-description ada@example.test',
      code: 'the-secret-code',
      iss: iss(),
      state,
    });
    const before = service().output().length;
    const location = await browser.redirectOf(`${stack().url}/auth/idp/callback?${query}`);
    expect(location).toContain('/login?error=');
    const logged = await until(() => {
      const output = service().output().slice(before);
      return output.includes('/auth/{provider}/callback') ? output : undefined;
    });
    expect(logged).toContain('a login through the identity provider failed');
    expect(logged).not.toMatch(/the-secret-code|the-description|the-issuer|server_error|ada@example/);
    expect(logged).not.toContain(state);
  });

  describe('over /trpc', () => {
    const post = (procedure: string, input: unknown, headers: Record<string, string> = {}) =>
      send(`/trpc/${procedure}`, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(input) });
    /** JSON-RPC 2.0's codes, and those that tRPC adds for HTTP statuses. */
    const expectError = async (response: Response, status: number, rpcCode: number, code: string) => {
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ error: { code: rpcCode, data: { code, httpStatus: status } } });
    };

    test('each error has the code that tRPC assigns to its status', async () => {
      const { email } = await registered({ stack: stack(), call: call() });
      await expectError(await post('auth.register', {}), 400, -32600, 'VALIDATION_FAILED');
      await expectError(await post('auth.verifyEmail', { token: 'x' }), 400, -32600, 'INVALID_TOKEN');
      await expectError(await send('/trpc/profile.get'), 401, -32001, 'UNAUTHENTICATED');
      const login = { email, password: PASSWORD };
      await expectError(await post('auth.login', login), 403, -32003, 'EMAIL_NOT_VERIFIED');
      await expectError(await post('auth.login', { ...login, password: 'x' }), 401, -32001, 'INVALID_CREDENTIALS');
      await expectError(await send('/trpc/nope'), 404, -32004, 'NOT_FOUND');
      await expectError(await post('auth.register', { ...login, name: 'Ada' }), 409, -32009, 'EMAIL_TAKEN');
      await expectError(await post('auth.login', 'x'.repeat(200_000)), 413, -32013, 'PAYLOAD_TOO_LARGE');
      await expectError(
        await post('auth.login', login, { 'content-type': 'text/plain' }),
        415,
        -32015,
        'UNSUPPORTED_MEDIA_TYPE',
      );
      const headers = { 'x-forwarded-for': clientAddress() };
      const attempts = await Promise.all(Array.from({ length: 6 }, () => post('auth.login', login, headers)));
      const refused = attempts.find(({ status }) => status === 429);
      if (!refused) throw new Error('no attempt was refused');
      await expectError(refused, 429, -32029, 'RATE_LIMITED');
    });

    test('a mutation without input needs no content type', async () => {
      const { session } = await loggedIn({ stack: stack(), call: call() });
      const response = await send('/trpc/auth.logout', {
        method: 'POST',
        headers: { cookie: `auth_session=${session}` },
      });
      expect(response.status).toBe(200);
      expect(await isAlive(call(), session)).toBe(false);
    });
  });

  test.each(['/api/upload/image', '/trpc/upload.image'])(
    '%s: a file part without a file name is refused with that reason, whatever its length',
    async (path) => {
      const { session } = await loggedIn({ stack: stack(), call: call() });
      for (const length of [1, 5000]) {
        const part = 'Content-Disposition: form-data; name="file"\r\nContent-Type: image/png';
        const response = await send(path, {
          method: 'POST',
          headers: { cookie: `auth_session=${session}`, 'content-type': 'multipart/form-data; boundary=b' },
          body: `--b\r\n${part}\r\n\r\n${'x'.repeat(length)}\r\n--b--\r\n`,
        });
        expect(response.status).toBe(400);
        const message = 'The part file has no file name';
        expect(await response.json()).toMatchObject(
          path.startsWith('/api') ? { error: message } : { error: { message } },
        );
      }
    },
  );

  if (name === 'embedded') {
    test('the development mailbox must not be cached', async () => {
      expect((await send('/dev/mail')).headers.get('cache-control')).toBe('no-store');
    });
  }
});
