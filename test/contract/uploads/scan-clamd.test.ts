import { afterAll, describe, expect, test } from 'vitest';
import { eicar, startClamd } from '../../rig/servers/clamd.ts';
import { until } from '../../rig/until.ts';
import { CLEAN, INFECTED, read, sender } from './scan.ts';
import { onBothStorages } from './storage.ts';

/** SCAN_URL=clamd://…, with the clamd of ClamAV. */

const MEGABYTE = 1024 ** 2;

const clamd = await startClamd({ streamMaxLength: '4M' });
afterAll(() => clamd.stop());

const pdfOf = (size: number) => Buffer.concat([CLEAN, Buffer.alloc(size - CLEAN.length, 'x')]);

describe.each(['wait', 'allow'])('SCAN_DOWN=%s', (SCAN_DOWN) => {
  onBothStorages(
    (uploading) => {
      test.each([
        ['a small clean file', CLEAN, 'stored'],
        ['one of many pieces', pdfOf(3 * MEGABYTE), 'stored'],
        ['malware', INFECTED, 'quarantined'],
        ['malware at the end of a large file', Buffer.concat([pdfOf(3 * MEGABYTE), INFECTED]), 'quarantined'],
      ])('%s', async (_name, bytes, state) => {
        const { sent, becomes, listed, of } = await sender(uploading());
        const { key, name, publicUrl } = await sent(bytes);
        await becomes(key, state);
        if (state === 'stored') expect(await read(publicUrl)).toEqual({ status: 200, body: bytes });
        else {
          expect((await listed(key)).finding).toMatch(/^Rig-Malware/);
          expect([403, 404]).toContain((await read(publicUrl)).status);
          expect((await of('upload.address', { name })).code).toBe('UPLOAD_QUARANTINED');
        }
      });

      test('the test file of EICAR, as a whole file', async () => {
        const { of, rowOf, becomes, listed } = await sender(uploading());
        // No type of UPLOAD_TYPES begins as it does.
        const { key } = (
          await of('upload.presign', { filename: 'a', contentType: 'application/pdf', size: eicar.length })
        ).data;
        await uploading().objects.put(`pending/${key.split('/')[1]}`, eicar);
        await uploading().stack.database("update uploads set content_type = 'text/plain' where object_key = ?", [key]);
        await becomes(key, 'quarantined');
        expect((await listed(key)).finding).toMatch(/^Eicar-Test-Signature/);
        expect(await rowOf(key)).toMatchObject({ state: 'infected' });
      });

      test('a file above StreamMaxLength is not clean: it waits', async () => {
        const { sent, listed, rowOf } = await sender(uploading());
        const { key, publicUrl } = await sent(pdfOf(6 * MEGABYTE));
        // clamd has said so. A try is repeated if its answer was lost: clamd closes the connection with bytes unread.
        await until(
          async () => {
            const { due_at: due } = (await rowOf(key)) ?? {};
            if (Number(due) > Date.now() + 5 * 60_000) return true;
            const again = 'update uploads set due_at = 1 where object_key = ? and due_at > ?';
            await uploading().stack.database(again, [key, Date.now() + 2000]);
            return false;
          },
          { what: 'the refusal of clamd', every: 500 },
        );
        expect((await listed(key)).state).toBe('pending');
        expect([403, 404]).toContain((await read(publicUrl)).status);
      });

      test('while clamd is down, then it is there again', async () => {
        const { sent, becomes, rowOf, listed } = await sender(uploading());
        await clamd.down();
        try {
          const { key, publicUrl } = await sent(INFECTED);
          if (SCAN_DOWN === 'allow') {
            await becomes(key, 'stored');
            expect((await read(publicUrl)).status).toBe(200);
            return;
          }
          await until(async () => Number((await rowOf(key))?.due_at) > Date.now() + 30_000);
          expect((await listed(key)).state).toBe('pending');
          await clamd.up();
          await becomes(key, 'quarantined');
        } finally {
          await clamd.restart();
        }
      });
    },
    { SCAN_URL: clamd.url, SCAN_DOWN },
  );
});
