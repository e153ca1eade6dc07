import { hash, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { until } from '../../rig/until.ts';
import { expectRefusal } from '../rig/scenario.ts';
import { COUNT, HOUR, last, PART, page, pdf, person, QUOTA, SIZE, send, whole } from './parts.ts';
import { onBothStorages, reachable, surfacesOf, type Uploading } from './storage.ts';

/** Files above 100 MB in parts. */

/** The status of a PUT without Content-Length. */
function streamed(url: string, body: Uint8Array): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { 'transfer-encoding': 'chunked' };
  const sending = request(reachable(url), { method: 'PUT', headers }, (response) => {
    response.resume();
    resolve(response.statusCode);
  });
  sending.once('error', reject).end(body);
  return promise;
}

const rowOf = async ({ stack }: Uploading, key: string) =>
  (
    await stack.database<{ state: string; due_at: number | null; multipart_id: string | null }>(
      'select state, due_at, multipart_id from uploads where object_key = ?',
      [key],
    )
  )[0];

/** As if the address of the whole file had expired so long ago; with `isDue` the inspection looks at it now. */
const expire = ({ stack }: Uploading, key: string, ms: number, isDue = true) =>
  stack.database(`update uploads set expires_at = ?${isDue ? ', due_at = 1' : ''} where object_key = ?`, [
    Date.now() - ms,
    key,
  ]);

onBothStorages(
  (uploading, storage) => {
    describe.each(surfacesOf(storage))('over %s', (surface) => {
      const user = () => person(uploading(), surface);
      const unfinished = async (key: string) => {
        const name = key.split('/')[1] ?? '';
        return (await uploading().objects.unfinished()).some((found) => found.endsWith(name));
      };

      test('the answer says so above 100 MB, and is as documented below', async () => {
        const { declare, usage } = await user();
        expect(Object.keys(await declare({ size: SIZE - 1 }))).toEqual([
          'success',
          'presignedUrl',
          'publicUrl',
          'key',
          'expiresIn',
        ]);
        const { parts, presignedUrl, expiresIn } = await declare();
        expect(parts).toEqual({ size: PART, count: COUNT });
        expect([expiresIn, URL.canParse(presignedUrl)]).toEqual([300, true]);
        expect(await usage()).toMatchObject({ used: 2 * SIZE - 1, files: 2 });
      });

      test.each(['public', 'private'])(
        'a %s file that was sent in parts is there whole once all have arrived',
        async (visibility) => {
          const { declare, of, sendParts, list, usage } = await user();
          const { key, publicUrl } = await declare({ visibility });
          expect((await of('upload.parts', { key })).data).toEqual({ size: PART, count: COUNT, stored: [] });
          expectRefusal(await of('upload.complete', { key }), 400, 'VALIDATION_FAILED');
          expect(await sendParts(key, [2, 1])).toEqual([200, 200]);
          expect((await of('upload.parts', { key })).data.stored).toEqual([1, 2]);
          const early = await of('upload.complete', { key });
          expectRefusal(early, 400, 'VALIDATION_FAILED');
          expect(early.details).toEqual({ parts: { rule: 'missing', message: expect.stringContaining(' 3, 4,') } });
          expect(await uploading().objects.has(key)).toBe(false);
          const others = Array.from({ length: COUNT - 2 }, (_, i) => i + 3);
          expect(new Set(await sendParts(key, others))).toEqual(new Set([200]));

          const completed = { success: true, key, contentType: 'application/pdf', size: SIZE };
          const both = await Promise.all([of('upload.complete', { key }), of('upload.complete', { key })]);
          expect(both.map(({ data }) => data)).toEqual([completed, completed]);
          expect((await of('upload.complete', { key })).data).toEqual(completed);
          expect((await of('upload.confirm', { key })).data).toEqual(completed);
          expect(hash('sha256', await uploading().objects.read(key))).toBe(whole);
          expect(await unfinished(key)).toBe(false);
          const url =
            visibility === 'public' ? publicUrl : (await of('upload.address', { name: key.split('/')[1] })).data.url;
          const { status, headers, body } = await fetch(reachable(url));
          await body?.cancel();
          expect([status, headers.get('content-type')]).toEqual([200, 'application/pdf']);
          expect(headers.get('cache-control')).toMatch(visibility === 'public' ? /immutable/ : /no-store/);

          expect(await list()).toMatchObject([{ key, visibility, state: 'pending', size: SIZE }]);
          await expire(uploading(), key, HOUR);
          await until(async () => (await rowOf(uploading(), key))?.state === 'kept');
          expect(await usage()).toMatchObject({ used: SIZE, files: 1 });
          const late = await of('upload.presignParts', { key, parts: [1] });
          expectRefusal(late, 400, 'VALIDATION_FAILED');
          expect(late.details).toEqual({ key: { rule: 'complete', message: 'This file is complete' } });
        },
      );

      // checks: 55, 56
      test('the address of a part works only as signed', async () => {
        const { declare, addresses } = await user();
        const [{ key }, other] = [await declare(), await declare()];
        const [{ presignedUrl } = { presignedUrl: '' }, second] = await addresses(key, [1, 2]);
        const [elsewhere] = await addresses(other.key, [1]);
        const changed = (change: (url: URL) => void) => {
          const url = new URL(presignedUrl);
          change(url);
          return url.href;
        };
        const part = storage === 'disk' ? 'part' : 'partNumber';
        const [expiry, later] = storage === 'disk' ? ['expires', '4000000000'] : ['X-Amz-Expires', '3600'];
        for (const [what, url, body] of [
          ['a shorter body', presignedUrl, pdf.subarray(1)],
          ['a longer body', presignedUrl, Buffer.concat([pdf, last])],
          ['another part', changed(({ searchParams }) => searchParams.set(part, '2')), pdf],
          ['another file', changed((url) => (url.pathname = new URL(elsewhere?.presignedUrl ?? '').pathname)), pdf],
          ['another time', changed(({ searchParams }) => searchParams.set(expiry, later)), pdf],
          ['the whole file', changed(({ searchParams }) => searchParams.delete(part)), pdf],
        ] as const)
          expect([403, 404], what).toContain(await send(url, body));
        expect(await streamed(presignedUrl, pdf)).toBe(403);
        expect([403, 404]).toContain((await fetch(reachable(presignedUrl))).status);
        expect(await send(presignedUrl, pdf)).toBe(200);
        expect(await send(second?.presignedUrl ?? '', pdf)).toBe(200);
      });

      test('a file of another type than declared is deleted, and its parts with it', async () => {
        const { declare, of, sendAll, usage } = await user();
        const { key } = await declare();
        await sendAll(key, page);
        expectRefusal(await of('upload.complete', { key }), 400, 'VALIDATION_FAILED');
        expect([await uploading().objects.has(key), await unfinished(key)]).toEqual([false, false]);
        await expire(uploading(), key, HOUR);
        await until(async () => (await rowOf(uploading(), key)) === undefined);
        expect(await usage()).toMatchObject({ used: 0, files: 0 });
      });

      test('another user gets no address of a part; nor does anybody for a file in one piece', async () => {
        const { declare, of } = await user();
        const { key } = await declare();
        const stranger = await user();
        const calls = [
          ['upload.parts', {}],
          ['upload.presignParts', { parts: [1] }],
          ['upload.complete', {}],
        ] as const;
        for (const [procedure, input] of calls) {
          for (const unknown of [key, `uploads/${randomUUID()}.pdf`, '..', 'ä'])
            expectRefusal(await stranger.of(procedure, { ...input, key: unknown }), 404, 'NOT_FOUND');
          expectRefusal(
            await of(procedure, { ...input, key: (await declare({ size: 9 })).key }),
            400,
            'VALIDATION_FAILED',
          );
        }
        for (const parts of [[], [0], [1.5], [1, COUNT + 1], Array(101).fill(1), ['1'], undefined])
          expectRefusal(await of('upload.presignParts', { key, parts }), 400, 'VALIDATION_FAILED');
        expect(await unfinished(key)).toBe(false);
      });

      test('a part may be sent twice, and its address is asked for by several calls at once', async () => {
        const { declare, of, addresses } = await user();
        const { key } = await declare();
        const found = (await Promise.all(Array.from({ length: 4 }, () => addresses(key, [3])))).flat();
        const statuses = await Promise.all(found.map(({ presignedUrl }) => send(presignedUrl, pdf)));
        // The embedded storage receives one at a time.
        expect(new Set([...statuses, 403])).toEqual(new Set([200, 403]));
        expect(await send(found[0]?.presignedUrl ?? '', pdf)).toBe(200);
        expect((await of('upload.parts', { key })).data.stored).toEqual([3]);
        expect((await of('upload.remove', { name: key.split('/')[1] })).code).toBeUndefined();
        expect(await unfinished(key)).toBe(false);
      });

      test('an upload that is deleted takes no part any more, and counts until the address of the whole file expires', async () => {
        const { declare, of, addresses, sendParts, usage } = await user();
        const { key } = await declare();
        expect(await sendParts(key, [1])).toEqual([200]);
        const [open] = await addresses(key, [2]);
        const name = key.split('/')[1];
        expect((await of('upload.remove', { name })).code).toBeUndefined();
        expect([await unfinished(key), (await usage()).files]).toEqual([false, 1]);
        expect([403, 404]).toContain(await send(open?.presignedUrl ?? '', pdf));
        for (const [procedure, input] of [
          ['upload.presignParts', { key, parts: [1] }],
          ['upload.parts', { key }],
          ['upload.complete', { key }],
        ] as const)
          expectRefusal(await of(procedure, input), 404, 'NOT_FOUND');
        await expire(uploading(), key, HOUR);
        await until(async () => (await rowOf(uploading(), key)) === undefined);
        expect([await unfinished(key), await usage()]).toMatchObject([false, { used: 0, files: 0 }]);
      });

      test('parts that are not joined within a day are deleted with the upload', async () => {
        const { declare, of, sendParts, usage } = await user();
        const [{ key }, { key: expired }] = [await declare(), await declare()];
        for (const each of [key, expired]) expect(await sendParts(each, [1])).toEqual([200]);
        const { due_at: due } = (await rowOf(uploading(), key)) ?? {};
        expect(Number(due)).toBeGreaterThan(Date.now() + 24 * HOUR);
        await expire(uploading(), key, 23 * HOUR);
        await expire(uploading(), expired, 24 * HOUR, false);
        expectRefusal(await of('upload.presignParts', { key: expired, parts: [2] }), 404, 'NOT_FOUND');
        await until(async () => Number((await rowOf(uploading(), key))?.due_at) > Date.now() + HOUR);
        expect(await sendParts(key, [2])).toEqual([200]);

        await expire(uploading(), key, 25 * HOUR);
        // Parts that were being sent may arrive until an hour later.
        await until(async () => (await rowOf(uploading(), key))?.multipart_id === '');
        expect(await unfinished(key)).toBe(false);
        expect(await usage()).toMatchObject({ used: SIZE, files: 1 });
        await uploading().stack.database('update uploads set due_at = 1 where object_key = ?', [key]);
        await until(async () => (await rowOf(uploading(), key)) === undefined);
      });

      test('a file that was sent in one piece instead is stored, and the parts are deleted', async () => {
        const { declare, sendParts } = await user();
        const { key } = await declare();
        expect(await sendParts(key, [1])).toEqual([200]);
        await uploading().objects.put(key, Buffer.concat([pdf, Buffer.alloc(SIZE - PART)]));
        await expire(uploading(), key, 25 * HOUR);
        await until(async () => (await rowOf(uploading(), key))?.state === 'kept');
        expect([await unfinished(key), await uploading().objects.has(key)]).toEqual([false, true]);
      });
    });
  },
  { UPLOAD_MAX_BYTES: String(1024 ** 3), UPLOAD_QUOTA: String(QUOTA) },
);
