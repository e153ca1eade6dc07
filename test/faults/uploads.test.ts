import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { cpuTime, memory, resetPeak } from '../bench/measure.ts';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { emptyPng, photograph, png } from '../contract/uploads/corpus.ts';
import {
  imageForm,
  keyOf,
  onBothStorages,
  onStorage,
  openFiles,
  pour,
  type SentImage,
  sendForm,
  sendImage,
  startUploading,
  type Uploading,
  uploader,
} from '../contract/uploads/storage.ts';
import { childrenOf } from '../rig/process/process-tree.ts';
import { startService } from '../rig/process/service.ts';
import { startS3 } from '../rig/servers/s3.ts';
import { until } from '../rig/until.ts';
import { patient } from './in-rounds.ts';

const MEGABYTE = 1024 * 1024;

const percentile = (values: number[], p: number): number =>
  values.sort((a, b) => a - b)[Math.ceil(values.length * p) - 1] ?? 0;

const rows = (uploading: Uploading, userId: string) =>
  uploading.stack.database<{ state: string }>('select state from uploads where user_id = ?', [userId]);

/** Sends one image many times; encoded once, so that the test's own work does not count as the service's. */
async function sender(uploading: Uploading, image: SentImage) {
  const encoded = new Response(imageForm(image));
  const body = new Uint8Array(await encoded.arrayBuffer());
  const type = encoded.headers.get('content-type') ?? '';
  return (session: string) => sendForm(uploading, session, body, { 'content-type': type });
}

/** A request to the image path with a body that the test controls. */
function openUpload({ stack }: Uploading, session: string, length: number): Socket {
  const socket = connect(Number(new URL(stack.url).port), '127.0.0.1');
  socket.write(
    `POST /api/upload/image HTTP/1.1\r\nHost: x\r\nCookie: auth_session=${session}\r\nContent-Type: multipart/form-data; boundary=b\r\n` +
      `Content-Length: ${length}\r\n\r\n`,
  );
  return socket.on('error', () => undefined);
}

const partHeader =
  '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n';
const asInProduction = { PASSWORD_ITERATIONS: '100000', LIMIT_LOGIN: '100000/900' };

onBothStorages((uploading, storage) => {
  const call: Call = (...request) => patient(callerOf('rest', uploading().stack.url))(...request);

  // checks: F20
  test('during 16 concurrent uploads of 12 megapixels logins stay fast and memory stays bounded', async () => {
    const { stack } = uploading();
    const person = await uploader(uploading());
    const bytes = await photograph(4000, 3000, 90);
    const service = stack.services[0]?.pid ?? 0;
    // Includes the conversion process, which the first image starts.
    await sendImage(uploading(), person.session, { bytes: await png() });
    const processes = [service, ...childrenOf(service)];
    const total = (which?: 'peak') => processes.reduce((sum, pid) => sum + memory(pid, which), 0);
    for (const pid of processes) resetPeak(pid);
    const before = total();
    const send = await sender(uploading(), { bytes, contentType: 'image/jpeg' });
    const logIn = async () => {
      const started = performance.now();
      const { status } = await call('auth.login', { email: person.email, password: person.password });
      expect(status).toBe(200);
      return performance.now() - started;
    };
    let open = 16;
    const uploads = Array.from({ length: 16 }, () =>
      send(person.session).finally(() => {
        open--;
      }),
    );
    const waits: number[] = [];
    while (open > 0) waits.push(await logIn());
    expect((await Promise.all(uploads)).map(({ status }) => status)).toEqual(Array(16).fill(200));
    const growth = total('peak') - before;
    console.log(
      `${storage}: p99 of ${waits.length} logins ${Math.round(percentile(waits, 0.99))} ms; memory +${Math.round(growth)} MB`,
    );
    // `npm run bench -- isolation` measures milliseconds; this shows that logins do not queue behind images.
    expect(waits.length).toBeGreaterThan(16);
    expect(growth).toBeLessThan(400);
  });

  test('past the bound of the queue: 503 with Retry-After, and the other images are converted', async () => {
    const { session } = await uploader(uploading());
    const bytes = emptyPng({ width: 4000, height: 5000, colorType: 2 });
    const send = await sender(uploading(), { bytes });
    const replies = await Promise.all(Array.from({ length: 100 }, () => send(session)));
    const refused = replies.filter(({ status }) => status === 503);
    expect(refused.length).toBeGreaterThan(0);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(100 - refused.length);
    for (const { body, headers } of refused) {
      expect(body).toEqual({ code: 'SERVICE_UNAVAILABLE', message: expect.any(String), error: expect.any(String) });
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });

  test('images of one user do not delay another user’s images', async () => {
    const [busy, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
    const send = await sender(uploading(), { bytes: await photograph(4000, 3000, 70), contentType: 'image/jpeg' });
    let answered = 0;
    const flood = Array.from({ length: 24 }, async () => {
      const { status } = await send(busy.session);
      answered++;
      return status;
    });
    await Promise.any(flood);
    expect((await send(other.session)).status).toBe(200);
    expect(answered).toBeLessThan(16);
    expect(await Promise.all(flood)).toEqual(Array(24).fill(200));
  });

  test('when the conversion process is killed: 503 with Retry-After, and the next image is converted', async () => {
    const { session } = await uploader(uploading());
    const small = { bytes: await png() };
    // It takes most of a second, so that the kill comes before its end on any machine.
    const large = { bytes: emptyPng({ width: 6000, height: 4000, bitDepth: 16, colorType: 6 }) };
    await sendImage(uploading(), session, small);
    const [conversions = 0] = childrenOf(uploading().stack.services[0]?.pid ?? 0);
    const before = cpuTime(conversions);
    const reply = sendImage(uploading(), session, large);
    await until(() => cpuTime(conversions) > before + 50, { every: 1 });
    process.kill(conversions, 'SIGKILL');
    const { status, body, headers } = await reply;
    expect({ status, body }).toEqual({
      status: 503,
      body: { code: 'SERVICE_UNAVAILABLE', message: expect.any(String), error: expect.any(String) },
    });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await sendImage(uploading(), session, small)).status).toBe(200);
  });

  // checks: 58
  test('an endless body is cut off at 5 MB and leaves nothing behind', async () => {
    const { id, session } = await uploader(uploading());
    const pid = uploading().stack.services[0]?.pid ?? 0;
    resetPeak(pid);
    const before = memory(pid);
    const headers = [
      `Cookie: auth_session=${session}`,
      'Content-Type: multipart/form-data; boundary=b',
      'Transfer-Encoding: chunked',
    ];
    const ends = await Promise.all(
      Array.from({ length: 8 }, () => pour(uploading(), headers, partHeader, 256 * MEGABYTE)),
    );
    for (const { answer, sent } of ends) {
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('{"error":"The image is larger than 5 MB"}');
      expect(sent).toBeLessThan(32 * MEGABYTE);
    }
    expect(memory(pid, 'peak') - before).toBeLessThan(8 * 24);
    expect(await rows(uploading(), id)).toEqual([]);
  });

  // checks: F18
  test('500 clients that disconnect halfway leave nothing behind', async () => {
    const { id, session } = await uploader(uploading());
    const pid = uploading().stack.services[0]?.pid ?? 0;
    const image = await png(2000, 1500);
    const whole = Buffer.concat([
      Buffer.from(partHeader),
      image,
      Buffer.from('\r\n--b\r\nContent-Disposition: form-data; name="type"\r\n\r\npost\r\n--b--\r\n'),
    ]);
    // All connections of the service's database pool are open by then: none is a leak.
    const profileOf = callerOf('rest', uploading().stack.url);
    await Promise.all(Array.from({ length: 60 }, () => profileOf('profile.get', undefined, { session })));
    const before = openFiles(pid).length;
    for (let round = 0; round < 50; round++) {
      await Promise.all(
        Array.from({ length: 10 }, async (_, i) => {
          const socket = openUpload(uploading(), session, whole.length);
          // Some before the file, some within it, some during the conversion.
          socket.write(whole.subarray(0, i % 3 === 0 ? 20 : i % 3 === 1 ? whole.length / 2 : whole.length));
          await until(() => socket.bytesWritten > 0 && socket.writableLength === 0);
          socket.destroy();
        }),
      );
    }
    // Complete images are converted first, which frees their user's places in the queue.
    const next = async () => (await sendImage(uploading(), session, { bytes: image })).status;
    await until(async () => (await next()) === 200, { what: 'an upload after all others', within: 40_000, every: 200 });
    await until(() => openFiles(pid).length <= before + 5);
    await until(async () => (await rows(uploading(), id)).every(({ state }) => state === 'kept'));
    expect((await uploading().objects.keys()).filter((key) => key.startsWith('.unfinished/'))).toEqual([]);
  });
}, asInProduction);

describe('during a storage failure', () => {
  onStorage('S3', (uploading) => {
    const call: Call = (...request) => callerOf('rest', uploading().stack.url)(...request);
    const s3 = () => {
      const { s3 } = uploading();
      if (!s3) throw new Error('no S3');
      return s3;
    };

    // checks: F11
    test('a deletion is acknowledged and completed', async () => {
      const { id, session } = await uploader(uploading());
      const { body } = await sendImage(uploading(), session, { bytes: await png() });
      const key = keyOf(body.url);
      await s3().down();
      try {
        expect((await call('upload.remove', { name: key.replace('uploads/', '') }, { session })).status).toBe(200);
        expect((await call('upload.usage', undefined, { session })).data).toMatchObject({ used: 0, files: 0 });
      } finally {
        await s3().up();
      }
      expect(await uploading().objects.has(key)).toBe(true);
      await uploading().stack.database('update uploads set expires_at = 1, due_at = 1 where object_key = ?', [key]);
      await until(async () => (await rows(uploading(), id)).length === 0, { within: 40_000 });
      expect(await uploading().objects.has(key)).toBe(false);
    });

    // checks: F11
    test.each(['slow-down', 'hang', 'reset', 'down'] as const)(
      '%s: 503 in time, nothing stored halfway, and it recovers',
      async (fault) => {
        const { id, session } = await uploader(uploading());
        const bytes = await photograph(600, 400);
        const before = await s3().keys();
        if (fault === 'down') await s3().down();
        else s3().behave(fault);
        try {
          const started = performance.now();
          const reply = await sendImage(uploading(), session, { bytes, contentType: 'image/jpeg' });
          expect(performance.now() - started).toBeLessThan(15_000);
          expect({ status: reply.status, body: reply.body }).toEqual({
            status: 503,
            body: { code: 'SERVICE_UNAVAILABLE', message: expect.any(String), error: expect.any(String) },
          });
          expect(reply.headers.get('retry-after')).toBeTruthy();

          const presigned = await call(
            'upload.presign',
            { filename: 'a', contentType: 'image/png', size: 9 },
            { session },
          );
          expect(presigned.status).toBe(200);
          const confirmed = await call('upload.confirm', { key: presigned.data.key }, { session });
          expect({ status: confirmed.status, data: confirmed.data }).toEqual({
            status: 503,
            data: { code: 'SERVICE_UNAVAILABLE', message: expect.any(String), error: expect.any(String) },
          });
        } finally {
          await s3().up();
          s3().behave('work');
        }
        expect(await s3().keys()).toEqual(before);
        expect((await sendImage(uploading(), session, { bytes, contentType: 'image/jpeg' })).status).toBe(200);
        // Nothing remains of refused uploads.
        await uploading().stack.database(
          "update uploads set due_at = 1 where user_id = ? and state = 'expected' and purpose = 'post'",
          [id],
        );
        await until(async () => (await rows(uploading(), id)).filter(({ state }) => state === 'expected').length === 1);
      },
    );
  });
});

describe('two instances on one database', () => {
  const QUOTA = 100_000;

  test('fifty concurrent declarations never exceed the quota, and the usage equals the uploads', async () => {
    const uploading = await startUploading('S3', { UPLOAD_QUOTA: String(QUOTA) }, 2);
    const { stack } = uploading;
    try {
      const [first, second] = stack.services.map(({ url }) => patient(callerOf('rest', url))) as [Call, Call];
      const declare = (call: Call, session: string, size: number) =>
        call('upload.presign', { filename: 'a', contentType: 'application/pdf', size }, { session });
      for (let round = 0; round < 5; round++) {
        const { id, session } = await uploader(uploading);
        const replies = await Promise.all(
          Array.from({ length: 50 }, (_, i) => declare(i % 2 ? first : second, session, QUOTA / 10)),
        );
        expect(replies.filter(({ status }) => status === 200)).toHaveLength(10);
        expect(replies.filter(({ status, code }) => status === 400 && code === 'VALIDATION_FAILED')).toHaveLength(40);

        // Declared and deleted concurrently, each deleted twice.
        const keys = replies.flatMap(({ status, data }) => (status === 200 ? [data.key as string] : []));
        await Promise.all([
          ...keys
            .slice(0, 6)
            .flatMap((key) =>
              [first, second].map((call) => call('upload.remove', { name: key.replace('uploads/', '') }, { session })),
            ),
          ...Array.from({ length: 20 }, (_, i) => declare(i % 2 ? first : second, session, QUOTA / 20)),
        ]);
        const [sum] = await stack.database<{ used: number; files: number }>(
          'select coalesce(sum(size), 0) as used, coalesce(sum(size > 0), 0) as files from uploads where user_id = ?',
          [id],
        );
        const { data } = await first('upload.usage', undefined, { session });
        expect(data).toEqual({ used: Number(sum?.used), quota: QUOTA, files: Number(sum?.files) });
        expect(data.used).toBeLessThanOrEqual(QUOTA);
      }
    } finally {
      await uploading.stop();
    }
  });
});

describe('at the start', () => {
  test('a missing bucket is created, outside production', async () => {
    const s3 = await startS3();
    const service = await startService({ env: s3.env });
    expect(await s3.keys()).toEqual([]);
    await service.stop();
    await s3.stop();
  });

  // checks: F11
  test('the service waits for an unreachable storage', async () => {
    const s3 = await startS3();
    await s3.down();
    const service = await startService({ env: s3.env });
    expect((await fetch(`${service.url}/api/health`)).status).toBe(200);
    await s3.up();
    await until(async () => (await s3.keys()).length === 0);
    await service.stop();
    await s3.stop();
  });

  test('in production a missing bucket stops the start with a message', async () => {
    const s3 = await startS3();
    const start = startService({
      env: {
        ...s3.env,
        NODE_ENV: 'production',
        APP_SECRET: randomBytes(32).toString('hex'),
        DATABASE_URL: 'mysql://nobody@127.0.0.1:9/none',
        REDIS_URL: 'redis://127.0.0.1:9',
        SMTP_URL: 'smtp://127.0.0.1:9',
        MAIL_FROM: 'a@example.test',
      },
    });
    await expect(start).rejects.toThrow(/S3_BUCKET names no bucket/);
    await s3.stop();
  });
});
