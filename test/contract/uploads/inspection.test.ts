import { describe, expect, test as oneByOne } from 'vitest';
import { until } from '../../rig/until.ts';
import { type Call, callerOf } from '../rig/callers.ts';
import { flat, photograph, png } from './corpus.ts';
import { keyOf, onBothStorages, put, reachable, sendImage, startUploading, uploader } from './storage.ts';

/** Direct uploads that match their declaration, one per type, and mismatches. */
const asDeclared: [contentType: string, make: () => Promise<Buffer>][] = [
  ['image/jpeg', () => photograph(40, 30)],
  ['image/png', () => png()],
  ['image/gif', () => flat(8, 8).gif().toBuffer()],
  ['image/webp', () => flat(8, 8).webp().toBuffer()],
  ['image/avif', () => flat(8, 8).avif().toBuffer()],
  ['application/pdf', async () => Buffer.from('%PDF-1.4\n1 0 obj')],
  ['application/pdf', async () => Buffer.from(`${' '.repeat(900)}%PDF-1.4\n1 0 obj`)],
  ['video/mp4', async () => Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1')],
  ['video/mp4', async () => Buffer.from('\0\0\0\x08moov', 'latin1')],
];
const page = Buffer.from('<!doctype html><script>alert(1)</script>');

const HOUR = 3_600_000;

/** Most of the time is spent waiting for the job's next round. */
const test = oneByOne.concurrent;

onBothStorages((uploading, storage) => {
  const call: Call = (...request) => callerOf('rest', uploading().stack.url)(...request);
  const database = <Row extends object>(sql: string, parameters: (string | number)[]) =>
    uploading().stack.database<Row>(sql, parameters);

  const presign = async (session: string, size: number, contentType = 'image/png') => {
    const { data } = await call('upload.presign', { filename: 'a', contentType, size }, { session });
    return data as { presignedUrl: string; key: string };
  };
  const send = async (session: string, bytes: Buffer, contentType = 'image/png') => {
    const { presignedUrl, key } = await presign(session, bytes.length, contentType);
    const body = new Uint8Array(bytes);
    const response = await fetch(reachable(presignedUrl), {
      method: 'PUT',
      headers: { 'content-type': contentType },
      body,
    });
    expect(response.status).toBe(200);
    return key;
  };
  const rowOf = async (key: string) =>
    (
      await database<{ state: string; due_at: number | null }>(
        'select state, due_at from uploads where object_key = ?',
        [key],
      )
    )[0];

  /** Makes the URL expired for this long, and its row due. Resolves after the inspection. */
  const inspect = async (key: string, expiredForMs: number) => {
    await database('update uploads set expires_at = ?, due_at = 1 where object_key = ?', [
      Date.now() - expiredForMs,
      key,
    ]);
    // During the inspection `due_at` is the end of a lease of at most a minute.
    await until(async () => {
      const row = await rowOf(key);
      return !row || row.due_at === null || Number(row.due_at) > Date.now() + 2 * 60_000;
    });
  };

  test.each(asDeclared)('%s as declared is kept', async (contentType, make) => {
    const { session } = await uploader(uploading());
    const key = await send(session, await make(), contentType);
    await inspect(key, 10 * 60_000);
    expect(await rowOf(key)).toMatchObject({ state: 'expected' });
    await inspect(key, HOUR);
    expect(await rowOf(key)).toEqual({ state: 'kept', due_at: null });
    expect(await uploading().objects.has(key)).toBe(true);
    expect((await call('upload.confirm', { key }, { session })).status).toBe(200);
  });

  test('an upload that differs from its declaration is deleted at the first check', async () => {
    const { session } = await uploader(uploading());
    const key = await send(session, page);
    await inspect(key, 10 * 60_000);
    expect(await uploading().objects.has(key)).toBe(false);
  });

  test('the last check catches an upload that was still in progress when the URL expired', async () => {
    const { session } = await uploader(uploading());
    const key = await send(session, await png());
    await inspect(key, 10 * 60_000);
    await uploading().objects.put(key, page);
    await inspect(key, HOUR);
    expect([await uploading().objects.has(key), await rowOf(key)]).toEqual([false, undefined]);
  });

  describe('a second PUT to the URL of a confirmed upload', () => {
    const first = Buffer.from('%PDF-1.4\nfirst.');
    const second = Buffer.from('%PDF-1.4\nsecond');
    const confirmed = async () => {
      const { session } = await uploader(uploading());
      const { presignedUrl, key } = await presign(session, first.length, 'application/pdf');
      const send = async (bytes: Buffer) =>
        (await put(presignedUrl, bytes, { 'content-type': 'application/pdf' })).status;
      const confirm = async () => (await call('upload.confirm', { key }, { session })).status;
      expect([await send(first), await confirm()]).toEqual([200, 200]);
      return { key, send, confirm };
    };
    const contentOf = async (key: string) =>
      (await uploading().objects.has(key)) ? String(await uploading().objects.read(key)) : undefined;

    test('with other content of the same type and length does not replace it', async () => {
      const [job, owner] = [await confirmed(), await confirmed()];
      // The embedded storage refuses it.
      const status = storage === 'S3' ? 200 : 403;
      expect([await job.send(second), await owner.send(second)]).toEqual([status, status]);
      await inspect(job.key, 10 * 60_000);
      expect(await contentOf(job.key)).toBe(storage === 'S3' ? undefined : String(first));
      expect(await owner.confirm()).toBe(storage === 'S3' ? 400 : 200);
      expect(await contentOf(owner.key)).toBe(storage === 'S3' ? undefined : String(first));
    });

    test('with the same content changes nothing', async () => {
      const { key, send, confirm } = await confirmed();
      expect(await send(first)).toBe(storage === 'S3' ? 200 : 403);
      expect(await confirm()).toBe(200);
      await inspect(key, 10 * 60_000);
      await inspect(key, HOUR);
      expect([await contentOf(key), await rowOf(key)]).toEqual([String(first), { state: 'kept', due_at: null }]);
    });
  });

  test('another size than declared is deleted', async () => {
    const { session } = await uploader(uploading());
    const { key } = await presign(session, 5000);
    await uploading().objects.put(key, await png());
    await inspect(key, 10 * 60_000);
    expect(await uploading().objects.has(key)).toBe(false);
  });

  test('the row of an unused URL is deleted', async () => {
    const { session } = await uploader(uploading());
    const { key } = await presign(session, 10);
    await inspect(key, 10 * 60_000);
    expect(await rowOf(key)).toBeDefined();
    await inspect(key, HOUR);
    expect(await rowOf(key)).toBeUndefined();
  });

  test('an upload is not inspected before its URL expires', async () => {
    const { session } = await uploader(uploading());
    const key = await send(session, page);
    const { due_at: inspectedAt } = (await rowOf(key)) ?? {};
    expect(Number(inspectedAt)).toBeGreaterThan(Date.now() + 9 * 60_000);
  });

  test('an image that was never completely stored is deleted', async () => {
    const { id, session } = await uploader(uploading());
    const { body } = await sendImage(uploading(), session, { bytes: await png() });
    const key = keyOf(body.url);
    // As after a crash between storing the image and recording it.
    await database("update uploads set state = 'expected', expires_at = 1, due_at = 1 where object_key = ?", [key]);
    await until(async () => (await rowOf(key)) === undefined);
    expect(await uploading().objects.has(key)).toBe(false);
    expect(await database('select 1 from uploads where user_id = ?', [id])).toEqual([]);
  });

  const avatarOf = async (session: string, type = 'avatar'): Promise<string> =>
    (await sendImage(uploading(), session, { bytes: await png(), type })).body.url;
  const wear = async (session: string, avatar: string) =>
    expect((await call('profile.update', { avatar }, { session })).status).toBe(200);

  test('storing an avatar does not change the profile', async () => {
    const { session } = await uploader(uploading());
    await avatarOf(session);
    expect((await call('profile.get', undefined, { session })).data.user.avatar).toBe('');
  });

  test('a replaced avatar is deleted after a day', async () => {
    const { session } = await uploader(uploading());
    const [first, second] = [await avatarOf(session), await avatarOf(session)];
    await wear(session, first);
    expect(await rowOf(keyOf(first))).toEqual({ state: 'kept', due_at: null });
    await wear(session, second);
    const row = await rowOf(keyOf(first));
    expect(row?.state).toBe('replaced');
    expect(Number(row?.due_at)).toBeGreaterThan(Date.now() + 23 * HOUR);
    expect(await uploading().objects.has(keyOf(first))).toBe(true);
    await database('update uploads set due_at = 1 where object_key = ?', [keyOf(first)]);
    await until(async () => (await rowOf(keyOf(first))) === undefined);
    expect(await uploading().objects.has(keyOf(first))).toBe(false);
    expect(await rowOf(keyOf(second))).toEqual({ state: 'kept', due_at: null });
  });

  test.each([
    ['its own user shows it again', false, '', 'kept'],
    ['another user shows it', true, '', 'replaced'],
    ['another user shows it with a query', true, '?v=2', 'replaced'],
  ])('while %s it stays and is not inspected; it is deleted a day later', async (_name, byAnother, query, state) => {
    const [owner, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
    const url = await avatarOf(owner.session);
    const { session } = byAnother ? other : owner;
    await wear(owner.session, url);
    await wear(owner.session, '');
    await wear(session, url + query);
    expect(await rowOf(keyOf(url))).toEqual({ state, due_at: null });
    await wear(session, '');
    expect(await rowOf(keyOf(url))).toMatchObject({ state: 'replaced' });
    await inspect(keyOf(url), 0);
    expect([await rowOf(keyOf(url)), await uploading().objects.has(keyOf(url))]).toEqual([undefined, false]);
  });

  test('an inspected avatar is not inspected again while a profile shows it', async () => {
    const [owner, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
    const url = await avatarOf(owner.session);
    await wear(owner.session, url);
    await wear(other.session, url);
    await wear(owner.session, '');
    await inspect(keyOf(url), 0);
    expect(await rowOf(keyOf(url))).toEqual({ state: 'replaced', due_at: null });
    expect(await uploading().objects.has(keyOf(url))).toBe(true);
    await wear(other.session, '');
    expect(Number((await rowOf(keyOf(url)))?.due_at)).toBeGreaterThan(Date.now() + 23 * HOUR);
  });

  test('an inspected avatar is deleted a day after the last user whose profile shows it is removed', async () => {
    const [owner, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
    const url = await avatarOf(owner.session);
    await wear(owner.session, url);
    await wear(other.session, url);
    await wear(owner.session, '');
    await inspect(keyOf(url), 0);
    expect((await call('account.delete', undefined, { session: other.session })).status).toBe(200);
    await database('update removals set due_at = 1 where user_id = ?', [other.id]);
    await until(async () => (await database('select id from users where id = ?', [other.id])).length === 0);
    expect(Number((await rowOf(keyOf(url)))?.due_at)).toBeGreaterThan(Date.now() + 23 * HOUR);
  });

  test.each([
    ['a post', 'post', false],
    ["another user's avatar", 'avatar', true],
  ])('%s stays when no profile shows it', async (_name, type, byAnother) => {
    const [owner, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
    const url = await avatarOf(owner.session, type);
    const { session } = byAnother ? other : owner;
    await wear(session, url);
    await wear(session, '');
    expect(await rowOf(keyOf(url))).toEqual({ state: 'kept', due_at: null });
  });

  test('a profile cannot show a file that is being deleted', async () => {
    const { session } = await uploader(uploading());
    const url = await avatarOf(session);
    await database("update uploads set state = 'doomed', due_at = ? where object_key = ?", [
      Date.now() + HOUR,
      keyOf(url),
    ]);
    const reply = await call('profile.update', { avatar: url }, { session });
    expect(reply).toMatchObject({ status: 400, code: 'VALIDATION_FAILED', details: { avatar: { rule: 'deleted' } } });
    expect((await call('profile.get', undefined, { session })).data.user.avatar).toBe('');
  });
});

oneByOne('two instances share the work, and nothing right is lost', async () => {
  const uploading = await startUploading('S3', {}, 2);
  try {
    const call = callerOf('rest', uploading.stack.url);
    const { session } = await uploader(uploading);
    const bytes = await png();
    const keys = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const { data } = await call(
          'upload.presign',
          { filename: 'a', contentType: 'image/png', size: bytes.length },
          { session },
        );
        await uploading.objects.put(data.key, i % 2 ? bytes : Buffer.alloc(bytes.length));
        return data.key as string;
      }),
    );
    await uploading.stack.database('update uploads set expires_at = ?, due_at = 1', [Date.now() - 2 * HOUR]);
    await until(async () => {
      const [row] = await uploading.stack.database<{ open: number }>(
        "select count(*) as open from uploads where state = 'expected'",
      );
      return Number(row?.open) === 0;
    });
    const left = await uploading.objects.keys();
    expect(left.sort()).toEqual(keys.filter((_, i) => i % 2).sort());
    // Each object was inspected once.
    const checks =
      uploading.s3?.requests().filter((request) => request.startsWith('HEAD') && request.includes('/uploads/')) ?? [];
    expect(new Set(checks).size).toBe(checks.length);
  } finally {
    await uploading.stop();
  }
});
