import { describe, expect, test } from 'vitest';
import { until } from '../../rig/until.ts';
import { type Call, callerOf, type Reply } from '../rig/callers.ts';
import { eventsOf } from '../rig/scenario.ts';
import { png } from './corpus.ts';
import { keyOf, onBothStorages, reachable, sendImage, surfacesOf, type Uploading, uploader } from './storage.ts';

const QUOTA = 100_000;
const HOUR = 3_600_000;

interface Usage {
  used: number;
  quota: number;
  files: number;
}

/** A user's upload calls over one surface. */
function acts({ stack }: Uploading, session: string, surface: 'rest' | 'trpc' = 'rest') {
  const call: Call = callerOf(surface, stack.url);
  return {
    declare: (size: number, contentType = 'application/pdf'): Promise<Reply> =>
      call('upload.presign', { filename: 'a', contentType, size }, { session }),
    remove: (key: string) => call('upload.remove', { name: key.replace('uploads/', '') }, { session }),
    list: (input = {}) => call('upload.list', input, { session }),
    usage: async () => (await call('upload.usage', undefined, { session })).data as Usage,
    wear: (avatar: string) => call('profile.update', { avatar }, { session }),
    profile: async () => (await call('profile.get', undefined, { session })).data.user,
  };
}

/** The bytes of an image and its variants. */
const bytesOf = ({ size, variants }: { size: number; variants: { bytes: number }[] }) =>
  variants.reduce((sum, { bytes }) => sum + bytes, size);

const pdf = (size: number) => Buffer.alloc(size, '%PDF-1.7 ');

const put = (address: string, bytes: Buffer, type = 'application/pdf') =>
  fetch(reachable(address), { method: 'PUT', headers: { 'content-type': type }, body: new Uint8Array(bytes) });

const rowOf = async ({ stack }: Uploading, key: string) =>
  (
    await stack.database<{ state: string; due_at: number | null }>(
      'select state, due_at from uploads where object_key = ?',
      [key],
    )
  )[0];

/** Makes the URL expired for this long, and its row due. */
const expire = ({ stack }: Uploading, key: string, expiredForMs: number) =>
  stack.database('update uploads set expires_at = ?, due_at = 1 where object_key = ?', [
    Date.now() - expiredForMs,
    key,
  ]);

onBothStorages(
  (uploading, storage) => {
    describe.each(surfacesOf(storage))('over %s', (surface) => {
      test('declared bytes count immediately; past the quota 400 states the usage', async () => {
        const { session } = await uploader(uploading());
        const { declare, usage } = acts(uploading(), session, surface);
        expect(await usage()).toEqual({ used: 0, quota: QUOTA, files: 0 });
        expect((await declare(60_000)).status).toBe(200);
        expect((await declare(40_000)).status).toBe(200);
        expect(await usage()).toEqual({ used: QUOTA, quota: QUOTA, files: 2 });
        const refusal = await declare(1);
        expect(refusal).toMatchObject({
          status: 400,
          code: 'VALIDATION_FAILED',
          details: { size: { rule: 'quota', message: expect.stringContaining(`${QUOTA}`) } },
        });
        expect(await usage()).toMatchObject({ used: QUOTA, files: 2 });
      });

      test('each user has a quota of their own', async () => {
        const [ada, charles] = await Promise.all([uploader(uploading()), uploader(uploading())]);
        expect((await acts(uploading(), ada.session, surface).declare(QUOTA)).status).toBe(200);
        expect((await acts(uploading(), charles.session, surface).declare(QUOTA)).status).toBe(200);
      });

      test('the list has only the user’s own uploads, in pages, newest first', async () => {
        const [owner, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
        const { declare, list } = acts(uploading(), owner.session, surface);
        const keys: string[] = [];
        for (let i = 1; i <= 5; i++) keys.unshift((await declare(i)).data.key);
        // Several have the same millisecond: no page repeats or misses one.
        await uploading().stack.database(
          'update uploads set created_at = ? where user_id = ? and size between 2 and 4',
          [1_700_000_000_999, owner.id],
        );
        const found: { key: string; createdAt: number }[] = [];
        let cursor: string | undefined;
        do {
          const { status, data } = await list({ limit: 2, ...(cursor && { cursor }) });
          expect(status).toBe(200);
          expect(data.data.length).toBeLessThanOrEqual(2);
          found.push(...data.data);
          cursor = data.nextCursor;
        } while (cursor);
        expect(found.map(({ key }) => key).sort()).toEqual(keys.toSorted());
        expect(found.map(({ createdAt }) => createdAt)).toEqual(
          found.map(({ createdAt }) => createdAt).toSorted((a, b) => b - a),
        );
        expect(found[4]).toEqual({
          name: expect.stringMatching(/^[0-9a-f-]{36}\.pdf$/),
          key: expect.stringMatching(/^uploads\/[0-9a-f-]{36}\.pdf$/),
          url: expect.stringMatching(/^http.*\/uploads\/[0-9a-f-]{36}\.pdf$/),
          visibility: 'public',
          contentType: 'application/pdf',
          size: expect.any(Number),
          purpose: 'direct',
          state: 'pending',
          createdAt: 1_700_000_000,
        });
        expect((await acts(uploading(), other.session, surface).list()).data).toEqual({ data: [] });
      });

      test('a list with a wrong limit or cursor is refused', async () => {
        const { session } = await uploader(uploading());
        const { list } = acts(uploading(), session, surface);
        for (const input of [{ limit: 0 }, { limit: 101 }, { cursor: 'x' }, { cursor: "1.a' or 1=1.b" }])
          expect([input, await list(input)]).toMatchObject([input, { status: 400, code: 'VALIDATION_FAILED' }]);
        expect((await list({ cursor: 'x' })).details).toMatchObject({ cursor: { rule: 'invalid_cursor' } });
      });

      test('a deleted upload disappears immediately; its bytes are free once its URL cannot be used', async () => {
        const { session } = await uploader(uploading());
        const { declare, remove, usage, list } = acts(uploading(), session, surface);
        const { presignedUrl, key } = (await declare(QUOTA)).data;
        expect((await put(presignedUrl, pdf(QUOTA))).status).toBe(200);
        expect((await declare(1)).status).toBe(400);
        expect(await remove(key)).toMatchObject({ status: 200, data: { success: true } });
        expect(await uploading().objects.has(key)).toBe(false);
        expect((await list()).data).toEqual({ data: [] });
        expect(await remove(key)).toMatchObject({ status: 404, code: 'NOT_FOUND' });
        // Until then a client could use the URL again and store more than the quota.
        expect(await usage()).toMatchObject({ used: QUOTA, files: 1 });
        expect((await declare(1)).status).toBe(400);
        await expire(uploading(), key, 0);
        await until(async () => (await usage()).used === 0, { what: 'the room of a deleted upload' });
        const next = (await declare(QUOTA)).data;
        await uploading().stack.database('update uploads set expires_at = 1 where object_key = ?', [next.key]);
        expect((await remove(next.key)).status).toBe(200);
        expect(await usage()).toMatchObject({ used: 0, files: 0 });
      });

      test('users can delete only their own uploads', async () => {
        const [owner, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
        const { presignedUrl, key } = (await acts(uploading(), owner.session, surface).declare(500)).data;
        await put(presignedUrl, pdf(500));
        const { remove } = acts(uploading(), other.session, surface);
        expect(await remove(key)).toMatchObject({ status: 404, code: 'NOT_FOUND' });
        for (const name of ['x', '..', `uploads/${key}`, 'é', "' or 1=1", 'n'.repeat(4000)])
          expect(await remove(name)).toMatchObject({ status: 404, code: 'NOT_FOUND' });
        expect(await uploading().objects.has(key)).toBe(true);
        expect(await acts(uploading(), owner.session, surface).usage()).toMatchObject({ used: 500, files: 1 });
      });

      test('without a session nothing can be listed or deleted', async () => {
        const call = callerOf(surface, uploading().stack.url);
        for (const [procedure, input] of [['upload.usage'], ['upload.list'], ['upload.remove', { name: 'x' }]] as const)
          expect(await call(procedure, input)).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
      });
    });

    test('a file put to the URL of a deleted upload is deleted when the URL has expired', async () => {
      const { session } = await uploader(uploading());
      const { declare, remove } = acts(uploading(), session);
      const { presignedUrl, key } = (await declare(500)).data;
      expect((await remove(key)).status).toBe(200);
      expect((await put(presignedUrl, pdf(500))).status).toBe(200);
      await expire(uploading(), key, 10 * 60_000);
      await until(async () => !(await uploading().objects.has(key)));
      await until(async () => {
        // Repeated: the previous inspection may have just scheduled the next.
        await expire(uploading(), key, HOUR);
        return (await rowOf(uploading(), key)) === undefined;
      });
    });

    test('a deletion interrupted by a crash is completed', async () => {
      const { session } = await uploader(uploading());
      const { usage } = acts(uploading(), session);
      const { body } = await sendImage(uploading(), session, { bytes: await png() });
      const key = keyOf(body.url);
      const { used } = await usage();
      expect(used).toBe(bytesOf(body));
      // As after a crash between the transaction and the deletion of the object.
      await uploading().stack.database(
        "update uploads set state = 'doomed', expires_at = 1, due_at = 1 where object_key = ?",
        [key],
      );
      await until(async () => (await rowOf(uploading(), key)) === undefined);
      expect(await uploading().objects.has(key)).toBe(false);
    });

    test('a declaration without an upload frees its bytes at the last check', async () => {
      const { session } = await uploader(uploading());
      const { declare, usage } = acts(uploading(), session);
      const { key } = (await declare(QUOTA)).data;
      await expire(uploading(), key, HOUR);
      await until(async () => (await usage()).files === 0);
      expect(await usage()).toEqual({ used: 0, quota: QUOTA, files: 0 });
    });

    test('converted images count with their stored size, replaced avatars until they are deleted', async () => {
      const { session } = await uploader(uploading());
      const { usage, wear, list } = acts(uploading(), session);
      const send = async () => (await sendImage(uploading(), session, { bytes: await png(), type: 'avatar' })).body;
      const [first, second] = [await send(), await send()];
      expect(await usage()).toMatchObject({ used: bytesOf(first) + bytesOf(second), files: 2 });
      await wear(first.url);
      await wear(second.url);
      expect(await usage()).toMatchObject({ used: bytesOf(first) + bytesOf(second), files: 2 });
      const states = (await list()).data.data.map(({ url, state }: { url: string; state: string }) => [url, state]);
      expect(Object.fromEntries(states)).toEqual({ [first.url]: 'replaced', [second.url]: 'stored' });
      await uploading().stack.database('update uploads set due_at = 1 where object_key = ?', [keyOf(first.url)]);
      await until(async () => (await usage()).files === 1);
      expect(await usage()).toMatchObject({ used: bytesOf(second) });
    });

    test('an image past the quota gets an upload refusal, and nothing is stored', async () => {
      const { id, session } = await uploader(uploading());
      const { declare, usage } = acts(uploading(), session);
      await declare(QUOTA);
      const before = await uploading().objects.keys();
      const { status, body } = await sendImage(uploading(), session, { bytes: await png() });
      expect({ status, body }).toEqual({ status: 400, body: { error: expect.stringContaining(`${QUOTA}`) } });
      expect(await uploading().objects.keys()).toEqual(before);
      expect(await usage()).toMatchObject({ used: QUOTA, files: 1 });
      expect(await uploading().stack.database('select 1 from uploads where user_id = ?', [id])).toHaveLength(1);
    });

    test('deleting the avatar of the own profile clears it', async () => {
      const [owner, other] = await Promise.all([uploader(uploading()), uploader(uploading())]);
      const { remove, wear, profile } = acts(uploading(), owner.session);
      const { url } = (await sendImage(uploading(), owner.session, { bytes: await png(), type: 'avatar' })).body;
      await wear(`${url}?v=1`);
      expect((await remove(keyOf(url))).status).toBe(200);
      expect((await profile()).avatar || null).toBeNull();
      const changes = await eventsOf(uploading().stack, owner.id, 'profile-changed');
      expect(changes).toEqual([{ fields: 'avatar' }, { fields: 'avatar' }]);
      expect([await rowOf(uploading(), keyOf(url)), await uploading().objects.has(keyOf(url))]).toEqual([
        undefined,
        false,
      ]);
      // The profile of another user is not changed.
      const shared = (await sendImage(uploading(), owner.session, { bytes: await png(), type: 'avatar' })).body.url;
      await acts(uploading(), other.session).wear(shared);
      expect((await remove(keyOf(shared))).status).toBe(200);
      expect((await acts(uploading(), other.session).profile()).avatar).toBe(shared);
    });
  },
  { UPLOAD_QUOTA: String(QUOTA) },
);
