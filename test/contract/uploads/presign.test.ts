import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { memory, resetPeak } from '../../bench/measure.ts';
import { slowClock } from '../../rig/process/clock.ts';
import { startService } from '../../rig/process/service.ts';
import { inTime, until } from '../../rig/until.ts';
import { type Call, callerOf } from '../rig/callers.ts';
import { documented } from '../rig/scenario.ts';
import { png } from './corpus.ts';
import { onBothStorages, onStorage, pour, put, reachable, surfacesOf, unknownKey, uploader } from './storage.ts';

/** Bytes that count as sent although nobody has read them: in the socket buffers of both sides. */
const maxBuffered = () =>
  ['tcp_rmem', 'tcp_wmem']
    .map((name) => Number(readFileSync(`/proc/sys/net/ipv4/${name}`, 'utf8').trim().split(/\s+/)[2]))
    .reduce((sum, most) => sum + most);

const MEGABYTE = 1024 * 1024;
const KEY = /^uploads\/[A-Za-z0-9_-]+\.(?:jpg|png|webp|gif|avif|pdf|mp4)$/;

/** Sends a raw request and returns the status. */
async function raw(url: string, headers: string[], body: Uint8Array | string): Promise<number> {
  const { hostname, port, pathname, search, host } = new URL(reachable(url));
  const socket = connect(Number(port), hostname);
  socket.write(
    `PUT ${pathname}${search} HTTP/1.1\r\nHost: ${new URL(url).host || host}\r\n${headers.join('\r\n')}\r\n\r\n`,
  );
  socket.write(body);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  socket.once('data', (data) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString())?.[1])));
  socket.once('error', reject);
  socket.once('close', () => reject(new Error('closed without an answer')));
  return promise.finally(() => socket.destroy());
}

onBothStorages((uploading, storage) => {
  describe.each(surfacesOf(storage, documented))('over %s', (surface) => {
    const call: Call = (...request) => callerOf(surface, uploading().stack.url)(...request);
    let user: Awaited<ReturnType<typeof uploader>> | undefined;
    beforeAll(async () => {
      user = await uploader(uploading());
    });

    test('the URL has the documented form, and the upload has a row', async () => {
      const { id, session } = await uploader(uploading());
      const declared = { filename: 'a.png', contentType: 'image/png', size: 1234 };
      const { status, data } = await call('upload.presign', declared, { session });
      expect(status).toBe(200);
      expect(Object.keys(data).sort()).toEqual(['expiresIn', 'key', 'presignedUrl', 'publicUrl', 'success']);
      expect(data).toMatchObject({ success: true, expiresIn: 300, key: expect.stringMatching(KEY) });
      expect(data.publicUrl.endsWith(`/${data.key}`)).toBe(true);
      const rows = await uploading().stack.database<Record<string, unknown>>(
        'select object_key, purpose, content_type, size, state, expires_at - created_at as life from uploads where user_id = ?',
        [id],
      );
      expect(rows).toEqual([
        {
          object_key: data.key,
          purpose: 'direct',
          content_type: 'image/png',
          size: 1234,
          state: 'expected',
          life: 300_000,
        },
      ]);
    });

    // checks: 54
    test.each([
      ['contentType', { contentType: 'text/html' }],
      ['contentType', { contentType: 'image/svg+xml' }],
      ['contentType', { contentType: 'image/png; charset=x' }],
      ['contentType', { contentType: 'IMAGE/PNG\r\nX: y' }],
      ['contentType', { contentType: 'video/webm' }],
      ['contentType', { contentType: '__proto__' }],
      ['contentType', { contentType: ['image/png'] }],
      ['contentType', { contentType: undefined }],
      ['size', { size: 0 }],
      ['size', { size: -1 }],
      ['size', { size: 1.5 }],
      ['size', { size: 1e18 }],
      ['size', { size: '10' }],
      ['size', { size: 50 * MEGABYTE + 1 }],
      ['filename', { filename: '' }],
      ['filename', { filename: 7 }],
    ])('a wrong %s is refused: %j', async (field, change) => {
      const reply = await call(
        'upload.presign',
        { filename: 'a', contentType: 'image/png', size: 1, ...change },
        { session: user?.session },
      );
      expect(reply).toMatchObject({ status: 400, code: 'VALIDATION_FAILED', details: { [field]: {} } });
      const rows = await uploading().stack.database('select 1 from uploads where user_id = ?', [user?.id ?? '']);
      expect(rows).toEqual([]);
    });

    test('without a session: 401', async () => {
      const reply = await call('upload.presign', { filename: 'a', contentType: 'image/png', size: 1 });
      expect(reply).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
    });
  });

  const call: Call = (...request) => callerOf('rest', uploading().stack.url)(...request);
  const presign = async (session: string, size: number, contentType = 'image/png', filename = 'a.png') => {
    const { status, data } = await call('upload.presign', { filename, contentType, size }, { session });
    expect(status).toBe(200);
    return data as { presignedUrl: string; publicUrl: string; key: string };
  };
  const confirm = (session: string | undefined, key: string) => call('upload.confirm', { key }, { session });

  // checks: 53
  test('the key and the storage contain nothing of the file name', async () => {
    const { session } = await uploader(uploading());
    const bytes = await png();
    for (const filename of [
      '../../etc/passwd',
      '..%2f..%2fx',
      'a/b\\c',
      'a\0b.png',
      '.htaccess',
      'x.php.png',
      '\u202Egnp.exe',
      'n'.repeat(1024),
      '__proto__',
    ]) {
      const before = await uploading().objects.keys();
      const { presignedUrl, key } = await presign(session, bytes.length, 'image/png', filename);
      expect(key).toMatch(/^uploads\/[0-9a-f-]{36}\.png$/);
      expect((await put(presignedUrl, bytes, { 'content-type': 'image/png' })).status).toBe(200);
      expect((await uploading().objects.keys()).sort()).toEqual([...before, key].sort());
    }
  });

  test('media types are case-insensitive', async () => {
    const { id, session } = await uploader(uploading());
    const bytes = await png();
    const { presignedUrl, key } = await presign(session, bytes.length, 'IMAGE/Png');
    expect(key).toMatch(/\.png$/);
    expect((await put(presignedUrl, bytes, { 'content-type': 'IMAGE/Png' })).status).toBe(200);
    expect((await confirm(session, key)).data).toMatchObject({ contentType: 'image/png' });
    expect(await uploading().stack.database('select content_type from uploads where user_id = ?', [id])).toEqual([
      { content_type: 'image/png' },
    ]);
  });

  if (storage === 'disk')
    test.each([
      ['image/png', 'IMAGE/PNG'],
      ['IMAGE/PNG', 'image/png'],
    ])('an upload declared as %s may be sent as %s', async (declared, sent) => {
      const { session } = await uploader(uploading());
      const bytes = await png();
      const { presignedUrl } = await presign(session, bytes.length, declared);
      expect((await put(presignedUrl, bytes, { 'content-type': sent })).status).toBe(200);
    });

  test('a refusal has the upload error field as well as the standard error body', async () => {
    const { session } = await uploader(uploading());
    const refused = await call('upload.presign', { filename: 'a', contentType: 'text/html', size: 1 }, { session });
    const sentence = expect.stringMatching(/^Must be one of image\/jpeg, /);
    expect({ status: refused.status, data: refused.data }).toEqual({
      status: 400,
      data: {
        message: 'Validation failed',
        code: 'VALIDATION_FAILED',
        details: { contentType: { message: sentence, rule: 'not_allowed' } },
        error: sentence,
      },
    });
    const malformed = await call('upload.presign', { filename: 'a', contentType: 'image/png' }, { session });
    expect(malformed.data).toMatchObject({ code: 'VALIDATION_FAILED', error: expect.any(String) });
    const { data } = await call('upload.presign', { filename: 'a', contentType: 'image/png', size: 1 });
    expect(data).toEqual({ message: 'Please log in', code: 'UNAUTHENTICATED' });
  });

  test('a declared upload can be put, read and confirmed', async () => {
    const { session } = await uploader(uploading());
    const bytes = await png();
    const { presignedUrl, publicUrl, key } = await presign(session, bytes.length);
    expect((await put(presignedUrl, bytes, { 'content-type': 'image/png' })).status).toBe(200);
    const published = await fetch(reachable(publicUrl));
    expect([published.status, published.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect(Buffer.from(await published.arrayBuffer()).equals(bytes)).toBe(true);
    const reply = await confirm(session, key);
    expect(reply).toMatchObject({ status: 200, data: { success: true, key } });
    expect(await uploading().objects.has(key)).toBe(true);
  });

  // checks: 55, 56
  test('the URL works only as signed', async () => {
    const { session } = await uploader(uploading());
    const bytes = await png();
    const { presignedUrl, key } = await presign(session, bytes.length);
    const other = await presign(session, bytes.length);
    const right = { 'content-type': 'image/png' };
    const edited = (change: (url: URL) => void) => {
      const url = new URL(presignedUrl);
      change(url);
      return url.href;
    };
    const [expiry, later] = storage === 'disk' ? ['expires', '4000000000'] : ['X-Amz-Expires', '3600'];
    const attempts: [string, () => Promise<number>][] = [
      ['another type', async () => (await put(presignedUrl, bytes, { 'content-type': 'text/html' })).status],
      ['no type', () => raw(presignedUrl, [`Content-Length: ${bytes.length}`], bytes)],
      ['a shorter body', async () => (await put(presignedUrl, bytes.subarray(1), right)).status],
      ['a longer body', async () => (await put(presignedUrl, Buffer.concat([bytes, Buffer.alloc(1)]), right)).status],
      [
        'a body of unknown length',
        () => raw(presignedUrl, ['Content-Type: image/png', 'Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n'),
      ],
      [
        'another key',
        async () =>
          (
            await put(
              edited((url) => {
                url.pathname = new URL(other.presignedUrl).pathname;
              }),
              bytes,
              right,
            )
          ).status,
      ],
      [
        'a later end',
        async () =>
          (
            await put(
              edited((url) => url.searchParams.set(expiry, later)),
              bytes,
              right,
            )
          ).status,
      ],
      ['an edited signature', async () => (await put(`${presignedUrl}0`, bytes, right)).status],
      [
        'no signature',
        async () =>
          (
            await put(
              edited((url) => {
                url.search = '';
              }),
              bytes,
              right,
            )
          ).status,
      ],
      ['DELETE', async () => (await fetch(reachable(presignedUrl), { method: 'DELETE' })).status],
      [
        'POST',
        async () =>
          (await fetch(reachable(presignedUrl), { method: 'POST', headers: right, body: new Uint8Array(bytes) }))
            .status,
      ],
    ];
    for (const [name, attempt] of attempts) {
      const status = await attempt();
      expect([name, status]).toEqual([name, storage === 'disk' && /^(?:DELETE|POST)$/.test(name) ? 404 : 403]);
      expect([name, await uploading().objects.has(key), await uploading().objects.has(other.key)]).toEqual([
        name,
        false,
        false,
      ]);
    }
    expect((await put(presignedUrl, bytes, right)).status).toBe(200);
  });

  // checks: 56
  test('URLs never share a key', async () => {
    const { session } = await uploader(uploading());
    const addresses = await Promise.all(Array.from({ length: 50 }, () => presign(session, 10)));
    expect(new Set(addresses.map(({ key }) => key)).size).toBe(50);
  });

  // checks: 55
  test('a URL works for 300 seconds', async () => {
    const [now] = uploading().stack.services;
    const { PORT, ...env } = now?.env ?? {};
    const { session } = await uploader(uploading());
    const bytes = await png();
    const signedAt = Date.now() / 1000;
    const { searchParams } = new URL((await presign(session, bytes.length)).presignedUrl);
    if (storage === 'S3') expect(searchParams.get('X-Amz-Expires')).toBe('300');
    else expect(Math.abs(Number(searchParams.get('expires')) - signedAt - 300)).toBeLessThan(60);

    const earlier = await startService({ env: { ...env, ...slowClock(301_000) } });
    const declared = { filename: 'a.png', contentType: 'image/png', size: bytes.length };
    const { data } = await callerOf('rest', earlier.url)('upload.presign', declared, { session });
    await earlier.stop({ by: 'SIGINT' });
    const { status } = await put(data.presignedUrl, bytes, { 'content-type': 'image/png' });
    expect([status, await uploading().objects.has(data.key)]).toEqual([403, false]);
  });

  if (storage === 'disk')
    test('a body of another length than declared is refused before its first byte', async () => {
      const { session } = await uploader(uploading());
      const { presignedUrl } = await presign(session, 1000);
      for (const length of ['Content-Length: 1001', 'Content-Length: 999', 'Transfer-Encoding: chunked']) {
        const answer = raw(presignedUrl, ['Content-Type: image/png', length], '');
        expect(await inTime(answer, { within: 15_000, what: `the refusal of ${length}` })).toBe(403);
      }
      expect((await uploading().objects.keys()).filter((name) => name.startsWith('.unfinished/'))).toEqual([]);
    });

  if (storage === 'disk')
    // checks: 56
    test('a URL works for one file, also under a race', async () => {
      const { session } = await uploader(uploading());
      const bytes = await png();
      const { presignedUrl } = await presign(session, bytes.length);
      const statuses = await Promise.all(
        Array.from(
          { length: 20 },
          async () => (await put(presignedUrl, bytes, { 'content-type': 'image/png' })).status,
        ),
      );
      expect(statuses.sort()).toEqual([200, ...Array(19).fill(403)]);
    });

  if (storage === 'disk')
    test('of thirty concurrent PUTs to a URL one is accepted, the others are refused before their bodies', async () => {
      const { session } = await uploader(uploading());
      const size = 10 * MEGABYTE;
      const { presignedUrl, key } = await presign(session, size, 'application/pdf');
      const { port, pathname, search } = new URL(presignedUrl);
      const body = Buffer.alloc(size, '%PDF-1.7 ');
      const answers: string[] = [];
      const sockets = Array.from({ length: 30 }, (_, i) => {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
        socket.on('data', (data) => {
          answers[i] = data.toString();
        });
        socket.write(
          `PUT ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Type: application/pdf\r\nContent-Length: ${size}\r\n\r\n`,
        );
        socket.write(body.subarray(0, MEGABYTE));
        return socket;
      });
      await until(() => Object.keys(answers).length === 29);
      expect(Object.values(answers).every((answer) => answer.startsWith('HTTP/1.1 403 '))).toBe(true);
      const drafts = (await uploading().objects.keys()).filter((name) => name.startsWith('.unfinished/'));
      expect(drafts).toEqual([`.unfinished/${key.slice('uploads/'.length)}`]);
      const winner = sockets.findIndex((_, i) => !(i in answers));
      sockets[winner]?.write(body.subarray(MEGABYTE));
      await until(() => winner in answers);
      expect(answers[winner]).toMatch(/^HTTP\/1\.1 200 /);
      for (const socket of sockets) socket.destroy();
      expect((await uploading().objects.read(key)).equals(body)).toBe(true);
    });

  if (storage === 'disk')
    // checks: F18
    test('a PUT that is cut off stores nothing, and the URL still works', async () => {
      const { session } = await uploader(uploading());
      const { presignedUrl, key } = await presign(session, 1000, 'application/pdf');
      const { port, pathname, search } = new URL(presignedUrl);
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(
        `PUT ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Type: application/pdf\r\nContent-Length: 1000\r\n\r\n%PDF-`,
      );
      await until(async () => (await uploading().objects.keys()).some((name) => name.startsWith('.unfinished/')));
      socket.destroy();
      await until(async () => !(await uploading().objects.keys()).some((name) => name.startsWith('.unfinished/')));
      expect(await uploading().objects.has(key)).toBe(false);
      const body = Buffer.alloc(1000, '%PDF-1.7 ');
      expect((await put(presignedUrl, body, { 'content-type': 'application/pdf' })).status).toBe(200);
    });

  if (storage === 'disk')
    // checks: 64
    test('without a session: 401 before the body is read', async () => {
      const pid = uploading().stack.services[0]?.pid ?? 0;
      const headers = ['Content-Type: multipart/form-data; boundary=b', `Content-Length: ${100 * MEGABYTE}`];
      for (const length of [0, 100 * MEGABYTE]) {
        resetPeak(pid);
        const before = memory(pid);
        const { answer, sent } = await pour(uploading(), headers, '', length);
        expect(answer).toMatch(/^HTTP\/1\.1 401 /);
        expect(answer).toContain('"UNAUTHENTICATED"');
        expect(sent).toBeLessThan(maxBuffered() + 2 * MEGABYTE);
        expect(memory(pid, 'peak') - before).toBeLessThan(32);
      }
    });

  describe('confirm', () => {
    test('nothing uploaded: 400, and the URL still works', async () => {
      const { session } = await uploader(uploading());
      const bytes = await png();
      const { presignedUrl, key } = await presign(session, bytes.length);
      const { status, data } = await confirm(session, key);
      expect({ status, data }).toEqual({ status: 400, data: { error: expect.any(String) } });
      expect((await put(presignedUrl, bytes, { 'content-type': 'image/png' })).status).toBe(200);
      expect((await confirm(session, key)).status).toBe(200);
    });

    test('other content than declared: 400, and it is deleted', async () => {
      const { session } = await uploader(uploading());
      const page = Buffer.from('<!doctype html><script>alert(1)</script>');
      const { presignedUrl, key } = await presign(session, page.length);
      expect((await put(presignedUrl, page, { 'content-type': 'image/png' })).status).toBe(200);
      const { status, data } = await confirm(session, key);
      expect({ status, data }).toEqual({ status: 400, data: { error: expect.any(String) } });
      expect(await uploading().objects.has(key)).toBe(false);
    });

    test('the upload of another user and an unknown key get the same answer, and nothing changes', async () => {
      const [owner, stranger] = await Promise.all([uploader(uploading()), uploader(uploading())]);
      const page = Buffer.from('not a png');
      const { presignedUrl, key } = await presign(owner.session, page.length);
      await put(presignedUrl, page, { 'content-type': 'image/png' });
      const [foreign, unknown] = [await confirm(stranger.session, key), await confirm(stranger.session, unknownKey())];
      expect({ status: foreign.status, data: foreign.data }).toEqual({ status: unknown.status, data: unknown.data });
      // Only in a 400 the sentence is all.
      expect(foreign).toMatchObject({ status: 404, data: { code: 'NOT_FOUND', error: foreign.data.message } });
      expect(await uploading().objects.has(key)).toBe(true);
      expect((await confirm(undefined, key)).status).toBe(401);
      // Keys are ASCII in MySQL, which rejects comparisons with other text.
      for (const odd of ['', '\u00a0', 'ключ', '\ud800', '\0'])
        expect((await confirm(owner.session, odd)).status).toBe(404);
    });
  });
});

// The count is in the database, so one storage is enough.
onStorage(
  'S3',
  (uploading) => {
    const call: Call = (...request) => callerOf('rest', uploading().stack.url)(...request);

    test('120 an hour per user: then 429 with rate limit headers, other users unaffected', async () => {
      const [busy, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
      const declared = { filename: 'a', contentType: 'video/webm', size: 5 };
      for (const expected of [200, 200, 200, 429]) {
        const { status, headers, data } = await call('upload.presign', declared, { session: busy.session });
        expect(status).toBe(expected);
        if (expected === 429) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
        if (expected === 429) expect(data).toMatchObject({ code: 'RATE_LIMITED', error: expect.any(String) });
      }
      expect((await call('upload.presign', declared, { session: other.session })).status).toBe(200);
    });

    // checks: 72
    test.each(['confirm', 'parts', 'presignParts', 'complete'])(
      'calls of %s are limited per user, because they ask the storage or sign addresses',
      async (name) => {
        const [busy, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
        const check = ({ session }: { session: string }) =>
          call(
            `upload.${name}`,
            { key: 'uploads/0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png', ...(name === 'presignParts' && { parts: [1] }) },
            { session },
          );
        for (const expected of [404, 404, 429]) expect((await check(busy)).status).toBe(expected);
        expect((await check(other)).status).toBe(404);
      },
    );

    // checks: 54
    test('types and size are configurable', async () => {
      const { session } = await uploader(uploading());
      const send = (change: object) =>
        call('upload.presign', { filename: 'a', contentType: 'video/webm', size: 5, ...change }, { session });
      expect((await send({ contentType: 'image/png' })).status).toBe(400);
      expect((await send({ size: 6 })).status).toBe(400);
      expect((await send({})).status).toBe(200);
    });
  },
  {
    LIMIT_UPLOAD: '3/3600',
    LIMIT_UPLOAD_CHECK: '2/3600',
    LIMIT_UPLOAD_PARTS: '2/3600',
    UPLOAD_TYPES: 'video/webm',
    UPLOAD_MAX_BYTES: '5',
  },
);
