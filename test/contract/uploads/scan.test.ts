import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { type HttpScanner, startHttpScanner } from '../../rig/servers/scanner.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { administrator, eventsOf, expectRefusal, kindsOf } from '../rig/scenario.ts';
import { photograph } from './corpus.ts';
import { CLEAN, INFECTED, read, sender } from './scan.ts';
import { keyOf, onBothStorages, reachable, sendImage, surfacesOf } from './storage.ts';

/** SCAN_URL: nobody can read a file before the scanner has looked at it. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const scanner: HttpScanner = await startHttpScanner();
afterAll(() => scanner.stop());
beforeEach(async () => {
  scanner.behave('work');
  scanner.onFile(() => undefined);
  await scanner.up();
});

/** Holds every file until `release`; `reached` resolves with the first one. */
function held() {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  scanner.onFile(async () => {
    reached.resolve();
    await released.promise;
  });
  return { reached: reached.promise, release: released.resolve };
}

const plain = (url: string) => url.replace(/\?.*/, '');

onBothStorages(
  (uploading, storage) => {
    describe.each(surfacesOf(storage))('over %s', (surface) => {
      const person = () => sender(uploading(), surface);
      const objects = () => uploading().objects;

      // checks: 90
      test.each(['public', 'private'])(
        'a %s file is pending, and nobody can read it, until the scanner says that it is clean',
        async (visibility) => {
          const { sent, of, listed, becomes, id } = await person();
          const { reached, release } = held();
          const { key, name, presignedUrl, publicUrl } = await sent(CLEAN, visibility);
          await reached;
          expect(key).toMatch(visibility === 'public' ? /^uploads\// : /^private\//);
          expect(new URL(presignedUrl).pathname).toContain(`/pending/${name}`);
          expect(await listed(key)).toMatchObject({ state: 'pending', visibility, url: publicUrl });
          expectRefusal(await of('upload.address', { name }), 409, 'UPLOAD_PENDING');
          const elsewhere = ['uploads', 'private'].map((prefix) =>
            plain(presignedUrl).replace('/pending/', `/${prefix}/`),
          );
          for (const url of [plain(presignedUrl), presignedUrl, ...elsewhere])
            expect([403, 404]).toContain((await read(url)).status);
          expect(await objects().keys()).not.toContain(key);
          expect(await kindsOf(uploading().stack, id)).not.toContain('upload-stored');

          release();
          await becomes(key, 'stored');
          const url = visibility === 'public' ? publicUrl : (await of('upload.address', { name })).data.url;
          expect(await read(url)).toEqual({ status: 200, body: CLEAN });
          expect(await eventsOf(uploading().stack, id, 'upload-stored')).toEqual([{ key }]);
          await until(async () => !(await objects().has(`pending/${name}`)));
          expect((await of('upload.confirm', { key })).status).toBe(200);
        },
      );

      test('at most ten files in quarantine an hour are mailed; each has its event', async () => {
        const { sent, becomes, id, email } = await person();
        for (let i = 0; i < 11; i++) await becomes((await sent(INFECTED)).key, 'quarantined');
        expect(await eventsOf(uploading().stack, id, 'upload-quarantined')).toHaveLength(11);
        const mails = "select id from outbox where email = ? and kind = 'file-quarantined'";
        expect(await uploading().stack.database(mails, [email])).toHaveLength(10);
      });

      test('a file is found without upload.confirm, some seconds after it was sent', async () => {
        const { declared, send, becomes, listed } = await person();
        const { key, presignedUrl, publicUrl } = await declared(CLEAN.length);
        expect(await send(presignedUrl, CLEAN)).toBe(200);
        await until(async () => (await listed(key)).state === 'stored', { within: 20_000 });
        expect((await read(publicUrl)).body).toEqual(CLEAN);
        await becomes(key, 'stored');
      });

      // checks: 90
      test.each(['public', 'private'])(
        'a %s file that is not clean is in quarantine for 30 days',
        async (visibility) => {
          const { sent, of, becomes, listed, rowOf, id, email, inspected } = await person();
          const { key, name, publicUrl } = await sent(INFECTED, visibility);
          await becomes(key, 'quarantined');
          expect(await listed(key)).toMatchObject({
            state: 'quarantined',
            finding: 'Rig-Malware',
            url: '',
            visibility,
          });
          if (publicUrl) expect([403, 404]).toContain((await read(publicUrl)).status);
          for (const procedure of ['upload.address', 'upload.remove'])
            expectRefusal(await of(procedure, { name }), 409, 'UPLOAD_QUARANTINED');
          if (visibility === 'private') expectRefusal(await of('upload.publish', { name }), 409, 'UPLOAD_QUARANTINED');
          expect((await of('upload.confirm', { key })).status).toBe(409);
          expect((await of('upload.usage')).data).toMatchObject({ used: INFECTED.length, files: 1 });

          const [event] = await eventsOf(uploading().stack, id, 'upload-quarantined');
          expect(event).toEqual({ key, finding: 'Rig-Malware', deletedAfter: expect.any(String) });
          expect(await kindsOf(uploading().stack, id)).not.toContain('upload-stored');
          const { text } = await uploading().stack.waitForMail({ to: email, subject: 'is in quarantine' });
          expect(text).toContain('Nobody can open the file');
          expect(text).not.toContain('Rig-Malware');

          const call = callerOf(surface, uploading().stack.url);
          const admin = await administrator({ stack: uploading().stack, call });
          const { uploads } = (await call('users.show', { id }, { session: admin.session })).data;
          expect(uploads.quarantined).toMatchObject([{ key, finding: 'Rig-Malware', url: '' }]);

          const { due_at: dueAt } = (await rowOf(key)) ?? {};
          expect(Math.abs(Number(dueAt) - Date.now() - 30 * DAY)).toBeLessThan(60_000);
          expect(Math.abs(Date.parse(event.deletedAfter) - Number(dueAt))).toBeLessThan(60_000);
          expect(await objects().has(`pending/${name}`)).toBe(true);
          await inspected(key, 30 * DAY);
          await until(async () => (await rowOf(key)) === undefined);
          expect((await objects().keys()).filter((each) => each.includes(name))).toEqual([]);
          expect((await of('upload.usage')).data).toMatchObject({ used: 0, files: 0 });
        },
      );

      test('users.show has the files in quarantine beside the newest', async () => {
        const { sent, becomes, id } = await person();
        const { key } = await sent(INFECTED);
        await becomes(key, 'quarantined');
        const clean = await sent();
        await becomes(clean.key, 'stored');
        const call = callerOf(surface, uploading().stack.url);
        const admin = await administrator({ stack: uploading().stack, call });
        const { newest, quarantined } = (await call('users.show', { id }, { session: admin.session })).data.uploads;
        expect(newest.map((each: { key: string }) => each.key).sort()).toEqual([clean.key, key].sort());
        expect(quarantined.map((each: { key: string }) => each.key)).toEqual([key]);
      });

      test('a file that differs from its declaration is deleted, and the scanner does not see it', async () => {
        const { declared, send, of, listed } = await person();
        const { key, name, presignedUrl } = await declared(CLEAN.length);
        expect(await send(presignedUrl, Buffer.from('<script>'.padEnd(CLEAN.length)))).toBe(200);
        const before = scanner.received.length;
        expect((await of('upload.confirm', { key })).status).toBe(400);
        expect(await objects().has(`pending/${name}`)).toBe(false);
        expect(scanner.received.slice(before)).toEqual([]);
        expect((await listed(key)).state).toBe('pending');
      });

      test('an address that nobody used is forgotten, and gives its bytes back', async () => {
        const { declared, rowOf, inspected, of } = await person();
        const { key } = await declared(5000);
        expect((await of('upload.usage')).data).toMatchObject({ used: 5000, files: 1 });
        await inspected(key, HOUR);
        await until(async () => (await rowOf(key)) === undefined);
        expect((await of('upload.usage')).data).toMatchObject({ used: 0, files: 0 });
        expect(
          await uploading().stack.database('select 1 from upload_variants where object_key like ?', [
            `pending/${key.split('/')[1]}`,
          ]),
        ).toEqual([]);
      });

      test('a file that is replaced while the scanner looks at it is not given out', async () => {
        const { sent, send, becomes, listed } = await person();
        const harmless = Buffer.from('%PDF-1.7'.padEnd(INFECTED.length));
        const { reached, release } = held();
        const { key, name, presignedUrl, publicUrl } = await sent(harmless);
        await reached;
        // The embedded storage takes one file.
        expect(await send(presignedUrl, INFECTED)).toBe(storage === 'S3' ? 200 : 403);
        release();
        if (storage === 'disk') return becomes(key, 'stored');
        // Other content than the confirmed one is deleted.
        await until(async () => {
          await uploading().stack.database('update uploads set due_at = 1 where object_key = ?', [key]);
          return !(await objects().has(`pending/${name}`));
        });
        expect((await listed(key)).state).toBe('pending');
        expect([403, 404]).toContain((await read(publicUrl)).status);
        expect(await objects().has(key)).toBe(false);
      });

      test('what is sent to the address of a stored file changes nothing, and is deleted', async () => {
        const { sent, send, becomes, inspected, rowOf } = await person();
        const { key, name, presignedUrl, publicUrl } = await sent(Buffer.from('%PDF-1.7'.padEnd(INFECTED.length)));
        await becomes(key, 'stored');
        await until(async () => !(await objects().has(`pending/${name}`)));
        expect(await send(presignedUrl, INFECTED)).toBe(200);
        // When nothing can be sent any more.
        expect(Number((await rowOf(key))?.due_at)).toBeGreaterThan(Date.now() + HOUR);
        await inspected(key, HOUR);
        expect(await rowOf(key)).toEqual({ state: 'kept', scan: 'clean', due_at: null });
        expect(await objects().has(`pending/${name}`)).toBe(false);
        expect(await uploading().stack.database('select 1 from upload_variants where upload_key = ?', [key])).toEqual(
          [],
        );
        expect((await read(publicUrl)).body).toEqual(Buffer.from('%PDF-1.7'.padEnd(INFECTED.length)));
      });

      test('a file that is deleted while the scanner looks at it is not given out', async () => {
        const { sent, of, rowOf, inspected } = await person();
        const { reached, release } = held();
        const { key, name, publicUrl } = await sent();
        await reached;
        expect((await of('upload.remove', { name })).status).toBe(200);
        release();
        expect((await of('upload.list')).data.data).toEqual([]);
        await inspected(key, HOUR);
        await until(async () => (await rowOf(key)) === undefined);
        expect((await objects().keys()).filter((each) => each.includes(name))).toEqual([]);
        expect([403, 404]).toContain((await read(publicUrl)).status);
        expect((await of('upload.usage')).data).toMatchObject({ used: 0, files: 0 });
      });

      test('a pending private file cannot be published; a clean one can', async () => {
        const { sent, of, becomes } = await person();
        const { reached, release } = held();
        const { key, name } = await sent(CLEAN, 'private');
        await reached;
        expectRefusal(await of('upload.publish', { name }), 409, 'UPLOAD_PENDING');
        release();
        await becomes(key, 'stored');
        const { upload } = (await of('upload.publish', { name })).data;
        expect(await read(upload.url)).toEqual({ status: 200, body: CLEAN });
      });

      test('a pending picture is no avatar of AVATARS=own; a clean one is', async () => {
        const { of, becomes } = await person();
        const bytes = await photograph(40, 30);
        const input = { filename: 'a.jpg', contentType: 'image/jpeg', size: bytes.length };
        const { key, presignedUrl, publicUrl } = (await of('upload.presign', input)).data;
        const wear = () => of('profile.update', { avatar: publicUrl });
        expect(await wear()).toMatchObject({ status: 400, details: { avatar: { rule: 'own_upload' } } });
        const { status } = await fetch(reachable(presignedUrl), {
          method: 'PUT',
          headers: { 'content-type': 'image/jpeg' },
          body: new Uint8Array(bytes),
        });
        expect(status).toBe(200);
        expect((await of('upload.confirm', { key })).status).toBe(200);
        await becomes(key, 'stored');
        expect((await wear()).status).toBe(200);
      });

      test('the export says what the scanner found', async () => {
        const { sent, becomes, of } = await person();
        const { key } = await sent(INFECTED);
        await becomes(key, 'quarantined');
        const { data } = await of('account.export');
        expect(data.uploads).toMatchObject([{ objectKey: key, scan: 'infected', finding: 'Rig-Malware' }]);
      });

      test('a user who is removed leaves nothing in quarantine', async () => {
        const { sent, becomes, id, rowOf } = await person();
        const [infected, waiting] = [await sent(INFECTED), await sent(INFECTED)];
        await becomes(infected.key, 'quarantined');
        await becomes(waiting.key, 'quarantined');
        await uploading().stack.database(
          "update uploads set state = 'doomed', due_at = 1, expires_at = 1 where user_id = ?",
          [id],
        );
        await until(async () => !(await rowOf(infected.key)) && !(await rowOf(waiting.key)));
        const names = [infected.name, waiting.name];
        expect((await objects().keys()).filter((key) => names.some((name) => key.includes(name)))).toEqual([]);
      });
    });

    describe('an image', () => {
      const rowsOf = (id: string) =>
        uploading().stack.database('select object_key from uploads where user_id = ?', [id]);

      test('is looked at as it was sent, before it is converted', async () => {
        const { session, id } = await sender(uploading());
        const bytes = await photograph(400, 300);
        const before = scanner.received.length;
        const { status, body } = await sendImage(uploading(), session, { bytes, contentType: 'image/jpeg' });
        expect([status, scanner.received.slice(before)]).toEqual([200, [bytes.length]]);
        expect((await read(body.url)).status).toBe(200);
        expect(await rowsOf(id)).toHaveLength(1);
      });

      test('that is not clean is refused, and nothing is stored', async () => {
        const { session, id } = await sender(uploading());
        const bytes = Buffer.concat([await photograph(400, 300), INFECTED]);
        const { status, body } = await sendImage(uploading(), session, { bytes, contentType: 'image/jpeg' });
        expect([status, body]).toEqual([400, { error: 'The scanner found malware in this file' }]);
        expect(await rowsOf(id)).toEqual([]);
      });

      test.each(['hang', 'down'] as const)('is refused with 503 while the scanner is away (%s)', async (fault) => {
        const { session, id } = await sender(uploading());
        if (fault === 'down') await scanner.down();
        else scanner.behave('hang');
        const reply = await sendImage(uploading(), session, {
          bytes: await photograph(40, 30),
          contentType: 'image/jpeg',
        });
        expect({ status: reply.status, body: reply.body }).toEqual({
          status: 503,
          body: { code: 'SERVICE_UNAVAILABLE', message: expect.any(String), error: reply.body.message },
        });
        expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
        expect(await rowsOf(id)).toEqual([]);
      });
    });

    describe('while the scanner is away', () => {
      test.each(['hang', 'down', 'error'] as const)('a file waits, and is stored afterwards (%s)', async (fault) => {
        const { sent, becomes, listed, rowOf } = await sender(uploading());
        if (fault === 'down') await scanner.down();
        else scanner.behave(fault === 'hang' ? 'hang' : { status: 502, body: 'Bad Gateway' });
        const before = scanner.received.length;
        const { key, publicUrl } = await sent();
        // A try has begun: the lease of a minute is longer than any pause between looks.
        await until(async () => Number((await rowOf(key))?.due_at) > Date.now() + 30_000);
        if (fault !== 'down') await until(() => scanner.received.length > before);
        expect((await listed(key)).state).toBe('pending');
        expect([403, 404]).toContain((await read(publicUrl)).status);
        await scanner.down();
        scanner.behave('work');
        await scanner.up();
        await becomes(key, 'stored');
        expect((await read(publicUrl)).body).toEqual(CLEAN);
      });
    });

    test.each([
      ['413', { status: 413, body: 'too large' }],
      ['a redirect', { status: 302, body: '' }],
      ['no JSON', { status: 200, body: 'OK' }],
      ['another form', { status: 200, body: '{"clean":"yes"}' }],
      ['no verdict', { status: 200, body: '{}' }],
    ])('an answer that is no verdict is not “clean” (%s)', async (_name, answer) => {
      const { sent, becomes, rowOf, listed } = await sender(uploading());
      scanner.behave(answer);
      const { key, publicUrl } = await sent();
      await until(async () => Number((await rowOf(key))?.due_at) > Date.now() + 5 * 60_000);
      expect((await listed(key)).state).toBe('pending');
      expect([403, 404]).toContain((await read(publicUrl)).status);
      scanner.behave('work');
      await becomes(key, 'stored');
    });
  },
  { SCAN_URL: scanner.url, AVATARS: 'own' },
);

describe('SCAN_DOWN=allow', () => {
  onBothStorages(
    (uploading) => {
      test('while the scanner is away, files and images are given out unscanned, and their rows state it', async () => {
        const { sent, of, becomes, rowOf, session } = await sender(uploading());
        await scanner.down();
        const { key, publicUrl } = await sent(INFECTED);
        await becomes(key, 'stored');
        expect((await read(publicUrl)).status).toBe(200);
        expect(await rowOf(key)).toMatchObject({ state: 'kept', scan: 'allowed' });
        const hidden = await sent(INFECTED, 'private');
        await becomes(hidden.key, 'stored');
        const { upload } = (await of('upload.publish', { name: hidden.name })).data;
        expect(await rowOf(upload.key)).toMatchObject({ state: 'kept', scan: 'allowed' });
        const image = { bytes: await photograph(40, 30), contentType: 'image/jpeg' };
        const { status, body } = await sendImage(uploading(), session, image);
        expect(status).toBe(200);
        expect(await rowOf(keyOf(body.url))).toMatchObject({ state: 'kept', scan: 'allowed' });
      });

      test.each([
        ['answers nothing', 'hang'],
        ['answers 503', { status: 503, body: '' }],
      ] as const)('an image is refused while the scanner is busy and %s', async (_name, behaviour) => {
        const { session } = await sender(uploading());
        scanner.behave(behaviour);
        const image = { bytes: await photograph(40, 30), contentType: 'image/jpeg' };
        expect((await sendImage(uploading(), session, image)).status).toBe(503);
      });

      test('a file waits while the scanner answers 503', async () => {
        const { sent, listed, becomes } = await sender(uploading());
        scanner.behave({ status: 503, body: '' });
        const before = scanner.received.length;
        const { key, publicUrl } = await sent(INFECTED);
        await until(() => scanner.received.length > before);
        expect((await listed(key)).state).toBe('pending');
        expect([403, 404]).toContain((await read(publicUrl)).status);
        scanner.behave('work');
        await becomes(key, 'quarantined');
      });

      test('a scanner that answers decides: malware is in quarantine, and what it refuses waits', async () => {
        const { sent, becomes, rowOf, listed } = await sender(uploading());
        const infected = await sent(INFECTED);
        await becomes(infected.key, 'quarantined');
        scanner.behave({ status: 413, body: 'too large' });
        const { key, publicUrl } = await sent();
        await until(async () => Number((await rowOf(key))?.due_at) > Date.now() + 5 * 60_000);
        expect((await listed(key)).state).toBe('pending');
        expect([403, 404]).toContain((await read(publicUrl)).status);
      });

      test('a file that only keeps the scanner from answering does not pass', async () => {
        const { sent, listed, rowOf } = await sender(uploading());
        // It accepts connections, and cuts off the file.
        scanner.onFile((bytes) => {
          if (bytes.equals(INFECTED)) throw new Error('crashed');
        });
        const before = scanner.received.length;
        const { key, publicUrl } = await sent(INFECTED);
        await until(() => scanner.received.length > before);
        await until(async () => Number((await rowOf(key))?.due_at) > Date.now() + 30_000);
        expect((await listed(key)).state).toBe('pending');
        expect([403, 404]).toContain((await read(publicUrl)).status);
      });
    },
    { SCAN_URL: scanner.url, SCAN_DOWN: 'allow' },
  );
});
