import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn, onStack } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { openFiles, sendForm, sendImage } from '../contract/uploads/storage.ts';
import { anyCharacter, cases, seed, timeLimit } from '../rig/client/random.ts';
import type { Service } from '../rig/process/service.ts';
import { inTime, until } from '../rig/until.ts';
import { unlimited } from './load.ts';

const noise = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
const latin1 = (text: string) => Buffer.from(text, 'latin1');

/** Broken requests and forms. Parsers do not depend on the parts, so one stack is enough; its database shows transactions. */
onStack(
  'real',
  (stack) => {
    const service = () => stack().services[0] as Service;
    let image: Buffer;
    let person: Awaited<ReturnType<typeof loggedIn>>;
    beforeAll(async () => {
      image = await png(8, 8);
      person = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
    });

    const memoryMb = () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${service().pid}/status`, 'utf8'))?.[1]) / 1024;

    /** Runs the work and asserts that the service still works and has kept nothing of the broken requests. */
    async function leavesNothing(work: (settings: ReturnType<typeof cases>) => Promise<unknown>) {
      const convertAll = async () => {
        const images = Array.from({ length: 8 * availableParallelism() }, () =>
          sendImage({ stack: stack() }, person.session, { bytes: image }),
        );
        for (const { status } of await Promise.all(images)) expect(status).toBe(200);
      };
      await convertAll();
      // Until the heap has grown to the size of such work.
      await work({ ...cases(60), seed: seed + 1 });
      const { pid } = service();
      const before = { files: openFiles(pid ?? 0).length, memory: memoryMb() };
      await work(cases(200));
      await convertAll();
      expect(service().pid).toBe(pid);
      await until(() => openFiles(pid ?? 0).length <= before.files + 3, { what: 'the end of all connections' });
      expect(memoryMb() - before.memory).toBeLessThan(64);
      // Only of this database, because all files share the server.
      const transactions = `select 1 from information_schema.innodb_trx join information_schema.processlist on id = trx_mysql_thread_id
        where db = database()`;
      await until(async () => (await stack().database(transactions)).length === 0, { every: 200 });
      const uploads = () =>
        stack().database<{ object_key: string; state: string }>('select object_key, state from uploads');
      // A complete image is stored even if its client has disconnected.
      await until(async () => (await uploads()).every(({ state }) => state === 'kept'), { what: 'the last upload' });
      const rows = await uploads();
      const stored = await readdir(join(service().dataDir, 'objects'), { recursive: true, withFileTypes: true });
      const files = stored.filter((entry) => entry.isFile()).map(({ name }) => `uploads/${name}`);
      const besides = await stack().database<{ object_key: string }>('select object_key from upload_variants');
      expect(files.sort()).toEqual([...rows, ...besides].map((row) => row.object_key).sort());
      expect(service().output()).not.toMatch(/"level":(?:50|60)|\bERROR\b|\bFATAL\b/);
    }

    /** Sends only these bytes; resolves to everything received. */
    const exchange = (bytes: Uint8Array) =>
      inTime(
        new Promise<string>((resolve) => {
          const socket = connect(service().port, '127.0.0.1');
          let answer = '';
          socket.on('data', (data) => {
            answer += data.toString('latin1');
          });
          // A client that still sends may see a reset.
          socket.on('error', () => undefined).on('close', () => resolve(answer));
          socket.end(bytes);
        }),
        { within: 20_000, what: 'the end of the connection' },
      );

    const securityHeaders = [
      "content-security-policy: default-src 'self'",
      'x-content-type-options: nosniff',
      'x-xss-protection: 1; mode=block',
      'x-frame-options: DENY',
      'referrer-policy: strict-origin-when-cross-origin',
      'strict-transport-security: max-age=31536000; includeSubDomains; preload',
    ];

    test(
      'random request bytes get an answer below 500 with security headers, and leave nothing behind',
      async () => {
        const requests = requestsOf(person.session, image);
        const seen = new Map<string, number>();
        await leavesNothing((settings) =>
          fc.assert(
            fc.asyncProperty(mutated(fc.constantFrom(...requests), requests), async (bytes) => {
              for (const answer of (await exchange(bytes)).split(/(?=HTTP\/1\.1 \d{3} )/)) {
                if (answer === '' || answer.startsWith('HTTP/1.1 100 ')) continue;
                const status = answer.slice(9, 12);
                seen.set(status, (seen.get(status) ?? 0) + 1);
                expect(status).toMatch(/^[234]\d\d$/);
                const [head = ''] = answer.toLowerCase().split('\r\n\r\n');
                for (const header of securityHeaders) expect(head).toContain(header.toLowerCase());
                expect(head).not.toMatch(/^(?:server|x-powered-by):/m);
              }
            }),
            settings,
          ),
        );
        expect([...seen.keys()]).toEqual(expect.arrayContaining(['200', '400', '403']));
      },
      timeLimit,
    );

    test(
      'a random image form is stored completely or refused without a trace',
      async () => {
        const seen = new Map<number, number>();
        await leavesNothing((settings) =>
          fc.assert(
            fc.asyncProperty(formOf(image), async ([type, bytes]) => {
              const { status, body } = await sendForm({ stack: stack() }, person.session, bytes, {
                'content-type': type,
              });
              seen.set(status, (seen.get(status) ?? 0) + 1);
              if (status === 200) expect(body).toMatchObject({ success: true, width: expect.any(Number) });
              else expect([status, body]).toEqual([400, { error: expect.any(String) }]);
            }),
            settings,
          ),
        );
        expect([...seen.keys()].sort()).toEqual([200, 400]);
      },
      timeLimit,
    );
  },
  { env: unlimited },
);

/** Valid requests; some make changes. */
function requestsOf(session: string, image: Uint8Array): Buffer[] {
  const own = `Host: localhost\r\nCookie: auth_session=${session}\r\n`;
  const json = (path: string, body: string, method = 'POST') =>
    `${method} ${path} HTTP/1.1\r\n${own}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const form = Buffer.concat([
    latin1('--b\r\nContent-Disposition: form-data; name="type"\r\n\r\npost\r\n--b\r\n'),
    latin1('Content-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'),
    image,
    latin1('\r\n--b--\r\n'),
  ]);
  return [
    `GET /api/users?limit=1 HTTP/1.1\r\n${own}\r\n`,
    `GET /trpc/profile.get,users.list?batch=1&input=%7B%7D HTTP/1.1\r\n${own}\r\n`,
    `GET /docs HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nRange: bytes=0-5\r\n\r\n`,
    `HEAD /login HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "x"\r\n\r\n`,
    `OPTIONS /auth/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n\r\n`,
    `POST /auth/verify-email HTTP/1.1\r\n${own}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{"token\r\n5\r\n":"x"\r\n1\r\n}\r\n0\r\n\r\n`,
    `PUT /uploads/a.png?size=3 HTTP/1.1\r\n${own}Content-Type: image/png\r\nContent-Length: 3\r\n\r\nabc`,
    json('/auth/login', '{"email":"ada@example.test","password":"x"}'),
    json('/api/profile', '{"bio":"x"}', 'PUT'),
    json('/trpc/auth.forgotPassword?batch=1', '{"0":{"email":"x"}}'),
  ]
    .map(latin1)
    .concat(
      Buffer.concat([
        latin1(
          `POST /api/upload/image HTTP/1.1\r\n${own}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${form.length}\r\n\r\n`,
        ),
        form,
      ]),
    );
}

const headerLines = [
  ...['Content-Length: 5', 'Content-Length: -1', 'Content-Length: 99999999999999999999', 'Content-Length: 0x5'],
  ...['Transfer-Encoding: chunked', 'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding:\tchunked', 'Trailer: Host'],
  ...['Expect: 100-continue', 'Expect: 100-continue\r\nContent-Length: 9', 'Connection: close', 'Connection: Host, x'],
  ...[
    'Connection: Upgrade\r\nUpgrade: websocket',
    'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
    'Host: a\r\nHost: b',
    'Host: [',
    'Host:',
  ],
  ...[
    'X: \0',
    'X : y',
    ' folded',
    'no colon',
    ': empty',
    'X: \r y',
    `X: ${'x'.repeat(20_000)}`,
    'a: b\r\n'.repeat(300),
  ],
  ...['Content-Encoding: gzip', 'Content-Type: multipart/form-data', 'Content-Type: application/json; charset=utf-7'],
  ...[
    'Cookie: auth_session=',
    'Cookie: ;;==;',
    'X-Forwarded-For: ,,;"',
    'Authorization: Bearer',
    'Range: bytes=9-1',
    'Origin: null',
  ],
];
const requestLines = [
  ...[
    'GET / HTTP/2.0',
    'GET / HTTP/1.0',
    'GET / HTTP/9.9',
    'GET /',
    'GET  / HTTP/1.1',
    'get / HTTP/1.1',
    '/ HTTP/1.1',
    '',
  ],
  ...[
    'OPTIONS * HTTP/1.1',
    'CONNECT x:1 HTTP/1.1',
    'GET http://x/livez HTTP/1.1',
    'GET //x/.. HTTP/1.1',
    'PRI * HTTP/2.0',
  ],
  ...[
    'POST /auth/login HTTP/1.1',
    'GET /%ff%00 HTTP/1.1',
    'GET /uploads/..%2fdatabase HTTP/1.1',
    `GET /${'a'.repeat(17_000)} HTTP/1.1`,
  ],
  ...[
    'TRACE / HTTP/1.1',
    'M-SEARCH * HTTP/1.1',
    'GET /?a[b]=1&a=2&__proto__=3 HTTP/1.1',
    'GET /trpc/ HTTP/1.1',
    'POST /trpc/, HTTP/1.1',
  ],
];
const chunks = [
  'ffffffffffffffff\r\n',
  '-1\r\nx\r\n',
  '5;x=y\r\nabcde\r\n',
  `1;${'x'.repeat(20_000)}\r\na\r\n`,
  '0\r\n\r\n',
  '0\r\nX: y\r\n\r\n',
  'g\r\n',
];

/** A request with up to three faults. */
function mutated(request: fc.Arbitrary<Buffer>, requests: Buffer[]): fc.Arbitrary<Buffer> {
  const at = fc.double({ min: 0, max: 1, noNaN: true });
  const place = (bytes: Buffer, part: number) => Math.floor(part * bytes.length);
  const splice = (bytes: Buffer, from: number, to: number, middle: Uint8Array) =>
    Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(to)]);
  const headEnd = (bytes: Buffer) => Math.max(0, bytes.indexOf('\r\n'));
  const mutation = fc.oneof<fc.Arbitrary<(bytes: Buffer) => Buffer>[]>(
    at.map((part) => (bytes) => bytes.subarray(0, place(bytes, part))),
    fc.tuple(at, noise).map(
      ([part, more]) =>
        (bytes) =>
          splice(bytes, place(bytes, part), place(bytes, part), more),
    ),
    fc.tuple(at, noise).map(
      ([part, other]) =>
        (bytes) =>
          splice(bytes, place(bytes, part), place(bytes, part) + 1, other),
    ),
    fc.tuple(at, fc.nat(30)).map(
      ([part, count]) =>
        (bytes) =>
          splice(bytes, place(bytes, part), place(bytes, part) + count, noBytes),
    ),
    fc
      .constantFrom(...headerLines)
      .map((line) => (bytes) => splice(bytes, headEnd(bytes), headEnd(bytes), latin1(`\r\n${line}`))),
    fc.constantFrom(...requestLines).map((line) => (bytes) => splice(bytes, 0, headEnd(bytes), latin1(line))),
    fc.tuple(at, fc.constantFrom(...chunks)).map(
      ([part, chunk]) =>
        (bytes) =>
          splice(bytes, place(bytes, part), place(bytes, part), latin1(chunk)),
    ),
    fc.constantFrom(...requests).map((next) => (bytes) => Buffer.concat([bytes, next])),
    fc.constant((bytes) => latin1(bytes.toString('latin1').replaceAll('\r\n', '\n'))),
    noise.map((start) => (bytes) => Buffer.concat([start, bytes])),
  );
  return fc
    .tuple(request, fc.array(mutation, { maxLength: 3 }))
    .map(([bytes, all]) => all.reduce((now, one) => one(now), bytes));
}

const noBytes = Buffer.alloc(0);

/** A form of a few mostly valid parts and boundaries: its content type and bytes. */
function formOf(image: Uint8Array): fc.Arbitrary<[type: string, bytes: Uint8Array<ArrayBuffer>]> {
  const mostly = <T>(right: T, ...others: T[]) =>
    fc.oneof({ weight: 6, arbitrary: fc.constant(right) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
  const file = fc.tuple(
    mostly(
      'form-data; name="file"; filename="a.png"',
      ...[
        'form-data; name="file"',
        'form-data; name="file"; filename=""',
        "form-data; name=file; filename*=utf-8''%00%zz",
      ],
      ...[
        'form-data',
        'attachment; filename="a.png"',
        '',
        'form-data; name="file"; filename="a.png',
        'form-data; name="__proto__"; filename="a"',
      ],
      `form-data; name="file"; filename="${'x'.repeat(20_000)}"`,
    ),
    mostly(
      'Content-Type: image/png',
      ...[
        'Content-Type: text/html',
        'Content-Type: multipart/mixed; boundary=c',
        'Content-Type: image/png\r\nContent-Transfer-Encoding: base64',
      ],
      ...['no colon', '\0: x', `X: ${'y'.repeat(20_000)}`, 'a: b\r\n'.repeat(40), ' folded', ''],
    ),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(Buffer.from(image)) },
      // So large that forms which are not released would soon block others.
      { weight: 3, arbitrary: fc.constant(Buffer.concat([image, Buffer.alloc(200_000, 'x')])) },
      noise,
      fc.constant(latin1('--c\r\nContent-Disposition: file; filename="b.png"\r\n\r\nx\r\n--c--')),
      fc.constant(latin1('--b\r\n--b--\r\n')),
    ),
  );
  const type = fc.tuple(
    mostly(
      'form-data; name="type"',
      'form-data; name="type"; filename="x"',
      'form-data; name=type',
      'form-data; name="constructor"',
    ),
    mostly('X: y', 'Content-Type: text/plain; charset=utf-7', 'Content-Type: application/json'),
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('avatar', 'post').map(latin1) },
      fc.string({ unit: anyCharacter }).map((text) => Buffer.from(text)),
      fc.constant(Buffer.alloc(3000, 'x')),
    ),
  );
  const separator = mostly(
    '\r\n--b\r\n',
    '\n--b\n',
    '\r\n--b \t\r\n',
    '\r\n--bb\r\n',
    '\r\n-b\r\n',
    '--b\r\n',
    '\r\n--b\r\n\r\n',
    '\r\n--b--\r\n',
  );
  const parts = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(file, type) },
    fc.array(fc.oneof(file, type), { maxLength: 8 }),
  ) as fc.Arbitrary<[string, string, Buffer][]>;
  const part = fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, fc.double({ min: 0, max: 1, noNaN: true }));
  return fc
    .record({
      contentType: mostly(
        'multipart/form-data; boundary=b',
        ...[
          'multipart/form-data; boundary="b"',
          'multipart/form-data',
          'multipart/form-data; boundary=',
          `multipart/form-data; boundary=${'b'.repeat(100)}`,
        ],
        ...[
          'multipart/mixed; boundary=b',
          'multipart/form-data; boundary=b; boundary=c',
          'multipart/form-data; boundary=b; charset=x',
        ],
      ),
      parts,
      separators: fc.array(separator, { minLength: 8, maxLength: 8 }),
      end: mostly('\r\n--b--\r\n', '', '\r\n--b-', '\r\n--b--\r\nafter the end', '\r\n--b--\r\n--b--\r\n', '\n--b--'),
      part,
    })
    .map(({ contentType, parts, separators, end, part }) => {
      const whole = Buffer.concat([
        ...parts.flatMap(([disposition, header, body], i) => [
          latin1(
            `${i === 0 ? separators[0]?.trimStart() : separators[i]}Content-Disposition: ${disposition}\r\n${header}\r\n\r\n`,
          ),
          body,
        ]),
        latin1(end),
      ]);
      return [contentType, new Uint8Array(whole.subarray(0, Math.floor(part * whole.length)))];
    });
}
