import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memory, resetPeak } from '../bench/measure.ts';
import { callerOf } from '../contract/rig/callers.ts';
import { onDisk, reachable, uploader } from '../contract/uploads/storage.ts';
import { loadClient, type UploadOptions } from '../rig/client/client.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { type BreakingProxy, startBreakingProxy } from '../rig/servers/proxy.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { unlimited } from './load.ts';

/** `uploadFile` of the client sends a large file in parts, while connections break, pages end and the service is killed. */

const MEGABYTE = 1024 ** 2;
const BREAKS_EVERY = 50_000_000;
/** LARGE_FILE_BYTES=1073741824 shows the same for a gigabyte. */
const LARGE = Number(process.env['LARGE_FILE_BYTES'] ?? 300 * MEGABYTE);
/** 21 parts. */
const SMALL = 101 * MEGABYTE;
const LONG = 300_000;
const env = { ...unlimited, UPLOAD_MAX_BYTES: String(5 * 1024 * MEGABYTE), UPLOAD_QUOTA: String(20 * 1024 * MEGABYTE) };

const directory = temporaryDirectory('large-files');

/** A file without two equal megabytes, and its hash. */
async function make(name: string, size: number) {
  const path = join(directory, name);
  const sum = createHash('sha256');
  const stream = createWriteStream(path);
  for (let left = size; left > 0; left -= MEGABYTE) {
    const bytes = randomBytes(Math.min(left, MEGABYTE));
    if (left === size) bytes.write('%PDF-1.7');
    sum.update(bytes);
    if (!stream.write(bytes)) await once(stream, 'drain');
  }
  await finished(stream.end());
  const open = async () =>
    new File([await openAsBlob(path)], `${name}.pdf`, { type: 'application/pdf', lastModified: 1_700_000_000_000 });
  return { open, hash: sum.digest('hex') };
}

const hashAt = async (url: string): Promise<string> => {
  const sum = createHash('sha256');
  for await (const chunk of (await fetch(reachable(url))).body ?? []) sum.update(chunk);
  return sum.digest('hex');
};

let large: Awaited<ReturnType<typeof make>>;
let small: Awaited<ReturnType<typeof make>>;
beforeAll(async () => {
  large = await make('large', LARGE);
  small = await make('small', SMALL);
}, LONG);

describe.each(['disk', 'S3'] as const)('with files on %s', (storage) => {
  let stack: Stack;
  let s3: S3 | undefined;
  let proxy: BreakingProxy;

  beforeAll(async () => {
    const portOf = (url: string) => Number(new URL(url).port);
    if (storage === 'S3') {
      s3 = await startS3();
      proxy = await startBreakingProxy(portOf(s3.url), BREAKS_EVERY);
      const addresses = {
        S3_UPLOAD_ENDPOINT: `http://127.0.0.1:${proxy.port}`,
        S3_PUBLIC_URL: `${s3.url}/${s3.bucket}`,
      };
      stack = await startStack('real', { env: { ...env, ...s3.env, ...addresses } });
    } else {
      stack = await startStack('embedded', { env });
      proxy = await startBreakingProxy(portOf(stack.url), BREAKS_EVERY);
    }
  }, LONG);
  afterAll(async () => {
    await proxy?.stop();
    await stack?.stop();
    await s3?.stop();
  });

  const unfinished = () => (s3 ?? onDisk(join(stack.services[0]?.dataDir ?? '', 'objects'))).unfinished();

  /** Files on disk are sent to the service itself, so its calls break too. */
  const throughProxy: typeof fetch = (url, init) =>
    fetch(
      storage === 'disk' ? String(url).replace(/^http:\/\/[^/]+/, `http://127.0.0.1:${proxy.port}`) : String(url),
      init,
    );

  async function person() {
    const { id, session } = await uploader({ stack, s3: undefined, objects: onDisk(''), stop: async () => undefined });
    const { createClient, uploadFile } = await loadClient();
    const client = createClient({
      url: stack.url,
      headers: { cookie: `auth_session=${session}` },
      fetch: throughProxy,
    });
    let sentParts = 0;
    return {
      id,
      sentParts: () => sentParts,
      of: (procedure: string, input: object) => callerOf('rest', stack.url)(procedure, input, { session }),
      upload: (file: File, options: UploadOptions = {}) =>
        uploadFile(client, file, {
          ...options,
          fetch: async (url, init) => {
            const response = await (options.fetch ?? throughProxy)(url, init);
            if (response.ok) sentParts++;
            return response;
          },
        }),
    };
  }

  test(
    'a file arrives whole through a proxy that breaks a connection every 50 MB, with at most 1.1 times its bytes',
    async () => {
      const { upload, of } = await person();
      const service = stack.services[0]?.pid ?? 0;
      resetPeak(service);
      const [before, { sent, broken }] = [memory(service), proxy.counts()];
      const started = performance.now();
      const { url, size, key } = await upload(await large.open());
      const seconds = (performance.now() - started) / 1000;
      const after = proxy.counts();
      const [growth, times] = [memory(service, 'peak') - before, (after.sent - sent) / LARGE];
      console.log(
        `${storage}: ${LARGE / MEGABYTE} MB in ${seconds.toFixed(1)} s, ${after.broken - broken} connections broken, ` +
          `${times.toFixed(3)} times the bytes; memory +${Math.round(growth)} MB`,
      );
      expect(size).toBe(LARGE);
      expect(await hashAt(url)).toBe(large.hash);
      expect(after.broken - broken).toBeGreaterThanOrEqual(Math.floor(LARGE / BREAKS_EVERY));
      expect(times).toBeLessThanOrEqual(1.1);
      expect(growth).toBeLessThan(100);
      expect(await unfinished()).toEqual([]);
      expect((await of('upload.list', {})).data.data).toMatchObject([{ key, size: LARGE }]);
    },
    LONG,
  );

  test(
    'after a reload of the page only the missing parts are sent',
    async () => {
      const { upload, sentParts, of } = await person();
      let stored = '';
      let inFlight = 0;
      // The page ends while parts are being sent.
      void upload(await small.open(), {
        onStart: (started) => {
          stored = JSON.stringify(started);
        },
        fetch: (url, init) => {
          if (sentParts() >= 6) return new Promise(() => undefined);
          inFlight++;
          return throughProxy(url, init).finally(() => inFlight--);
        },
      });
      await until(() => stored);
      const { key } = JSON.parse(stored) as { key: string };
      await until(async () => (await of('upload.parts', { key })).data.stored?.length >= 6 && inFlight === 0);
      const before = sentParts();
      const { url, key: same } = await upload(await small.open(), { resume: JSON.parse(stored) as object });
      expect([same, sentParts() - before]).toEqual([key, 21 - before]);
      expect(await hashAt(url)).toBe(small.hash);

      const again = await upload(await small.open(), { resume: JSON.parse(stored) as object });
      expect([again.key, sentParts()]).toEqual([key, 21]);
      const other = new File([await small.open()], 'other.pdf', { type: 'application/pdf' });
      expect((await upload(other, { resume: JSON.parse(stored) as object })).key).not.toBe(key);
    },
    LONG,
  );

  test('an aborted upload leaves nothing, and its promise rejects with the reason', async () => {
    const { id, upload, sentParts, of } = await person();
    const controller = new AbortController();
    const reason = new Error('the user has changed their mind');
    const progress: number[] = [];
    const uploading = upload(await small.open(), {
      signal: controller.signal,
      onProgress: ({ loaded, total }) => {
        expect(total).toBe(SMALL);
        progress.push(loaded);
        if (sentParts() >= 5) controller.abort(reason);
      },
    });
    await expect(uploading).rejects.toBe(reason);
    expect([progress[0], progress.length > 4, sentParts() < 15]).toEqual([0, true, true]);
    expect(await unfinished()).toEqual([]);
    expect((await of('upload.list', {})).data.data).toEqual([]);
    await stack.database('update uploads set expires_at = 1, due_at = 1 where user_id = ?', [id]);
    await until(async () => (await of('upload.usage', {})).data.used === 0);
  });

  // checks: F1
  test(
    'kill -9 of the service between any parts does not end an upload',
    async () => {
      const { upload, sentParts } = await person();
      const uploading = upload(await small.open(), { visibility: 'public' });
      const [service] = stack.services;
      for (const parts of [1, 8, 19]) {
        await until(() => sentParts() >= parts, { every: 1, within: 60_000 });
        await service?.kill();
        await service?.restart();
      }
      const { url } = await uploading;
      expect(await hashAt(url)).toBe(small.hash);
      expect(await unfinished()).toEqual([]);
    },
    LONG,
  );
});
