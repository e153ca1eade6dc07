import { hash } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { startHttpScanner } from '../../rig/servers/scanner.ts';
import { until } from '../../rig/until.ts';
import { expectRefusal } from '../rig/scenario.ts';
import { person, QUOTA, whole } from './parts.ts';
import { read } from './scan.ts';
import { onBothStorages } from './storage.ts';

/** SCAN_URL, and files above 100 MB in parts: they are sent to their pending key, and looked at once they are joined. */

const scanner = await startHttpScanner();
afterAll(() => scanner.stop());

onBothStorages(
  (uploading) => {
    const user = async () => {
      const sender = await person(uploading(), 'rest');
      const stateOf = async (key: string) =>
        (await sender.list()).find((each: { key: string }) => each.key === key)?.state;
      return { ...sender, stateOf };
    };
    const unfinished = async (key: string) =>
      (await uploading().objects.unfinished()).some((found) => found.endsWith(key.split('/')[1] ?? ''));

    test('the joined file is pending until the scanner has looked at it', async () => {
      const { declare, sendAll, of, stateOf } = await user();
      const { key, publicUrl } = await declare();
      await sendAll(key);
      expect(await stateOf(key)).toBe('pending');
      const before = scanner.received.length;
      const looked = Promise.withResolvers<void>();
      scanner.onFile(async (bytes) => {
        expect(hash('sha256', bytes)).toBe(whole);
        looked.resolve();
      });
      expect((await of('upload.complete', { key })).code).toBeUndefined();
      await looked.promise;
      // Whatever the caller repeats, the scanner looks once.
      expect((await of('upload.confirm', { key })).code).toBeUndefined();
      await until(async () => (await stateOf(key)) === 'stored', { within: 60_000 });
      expect(scanner.received.slice(before)).toHaveLength(1);
      const { status, body } = await read(publicUrl);
      expect([status, hash('sha256', body)]).toEqual([200, whole]);
      expect(await unfinished(key)).toBe(false);
      expectRefusal(await of('upload.presignParts', { key, parts: [1] }), 400, 'VALIDATION_FAILED');
    });

    test('a deletion leaves no parts at the pending key', async () => {
      const { declare, sendParts, of } = await user();
      const { key } = await declare();
      expect(await sendParts(key, [1, 2])).toEqual([200, 200]);
      expect(await unfinished(key)).toBe(true);
      expect((await of('upload.remove', { name: key.split('/')[1] })).code).toBeUndefined();
      await until(async () => !(await unfinished(key)));
    });
  },
  { SCAN_URL: scanner.url, UPLOAD_MAX_BYTES: String(1024 ** 3), UPLOAD_QUOTA: String(QUOTA) },
);
