import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { callerOf } from '../rig/callers.ts';
import { expectRefusal } from '../rig/scenario.ts';
import { png } from './corpus.ts';
import {
  imageForm,
  onBothStorages,
  put,
  reachable,
  sendForm,
  surfacesOf,
  type Uploading,
  uploader,
} from './storage.ts';

/** Private files: only the addresses of `upload.address` and `service.fileAddress` lead to them. */

const PDF = Buffer.from('%PDF-1.7 the invoice');
const TOKEN = 'a-token-of-the-orders';
const SERVICE_TOKENS = `orders:${createHash('sha256').update(TOKEN).digest('hex')}`;

const read = async (url: string, init: RequestInit = {}) => {
  const response = await fetch(reachable(url), init);
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
};
/** The signed request with another value for a part of its address. */
const changed = (url: string, change: (url: URL) => void): string => {
  const other = new URL(url);
  change(other);
  return String(other);
};
/** The part of the query that names the expiry of an address. */
const expiryOf = (url: string) => (url.includes('X-Amz-Expires') ? 'X-Amz-Expires' : 'expires');
const signatureOf = (url: string) => (url.includes('X-Amz-Signature') ? 'X-Amz-Signature' : 'signature');

async function owner(uploading: Uploading, surface: 'rest' | 'trpc') {
  const person = await uploader(uploading);
  const { session } = person;
  const call = callerOf(surface, uploading.stack.url);
  const of = (procedure: string, input: object) => call(procedure, input, { session });
  return {
    ...person,
    of,
    list: async () => (await of('upload.list', {})).data.data,
    /** A private file; resolves to its name. */
    async stored(bytes = PDF, contentType = 'application/pdf', visibility = 'private') {
      const { data } = await of('upload.presign', { filename: 'a', contentType, size: bytes.length, visibility });
      expect((await put(data.presignedUrl, bytes, { 'content-type': contentType })).status).toBe(200);
      return { ...data, name: data.key.split('/')[1] as string };
    },
    async image(visibility: string | undefined) {
      const form = imageForm({ bytes: await png(1600, 1200) });
      if (visibility !== undefined) form.set('visibility', visibility);
      const { status, body } = await sendForm(uploading, session, form);
      expect({ status, body }).toMatchObject({ status: 200 });
      return body;
    },
    async address(name: string, options: object = {}) {
      const { data, code } = await of('upload.address', { name, ...options });
      expect(code).toBeUndefined();
      return data;
    },
  };
}

onBothStorages(
  (uploading, storage) => {
    describe.each(surfacesOf(storage))('over %s', (surface) => {
      const person = () => owner(uploading(), surface);

      // checks: 88
      test('a private file is read at an address that its owner asks for, and nowhere else', async () => {
        const { stored, list, address } = await person();
        const { name, key, publicUrl } = await stored();
        expect(key).toMatch(/^private\/[0-9a-f-]{36}\.pdf$/);
        expect(publicUrl).toBe('');
        expect(await list()).toMatchObject([{ name, key, url: '', visibility: 'private' }]);
        const before = Date.now() / 1000;
        const { url, expiresAt } = await address(name);
        expect(expiresAt - before).toBeGreaterThan(298);
        expect(expiresAt - before).toBeLessThan(302);
        const { status, headers, body } = await read(url);
        expect([status, body]).toEqual([200, PDF]);
        expect(headers.get('content-type')).toBe('application/pdf');
        expect(headers.get('cache-control')).toBe('private, no-store');
        for (const elsewhere of [
          changed(url, (plain) => (plain.search = '')),
          changed(url, (plain) => {
            plain.pathname = plain.pathname.replace('/private/', '/uploads/');
            plain.search = '';
          }),
        ])
          expect([403, 404]).toContain((await read(elsewhere)).status);
        expect((await read(url)).status).toBe(200);
      });

      // checks: 88
      test('an address is for one object, one method and one time', async () => {
        const { stored, address } = await person();
        const [{ name }, another] = [await stored(), await stored()];
        const { url } = await address(name, { download: 'invoice.pdf' });
        const [expiry, signature] = [expiryOf(url), signatureOf(url)];
        const last = (text: string) => (text.endsWith('A') || text.endsWith('a') ? 'b' : 'a');
        for (const wrong of [
          changed(url, (other) => (other.pathname = other.pathname.replace(name, another.name))),
          changed(url, ({ searchParams }) => searchParams.set(expiry, String(Number(searchParams.get(expiry)) + 1))),
          changed(url, ({ searchParams }) => searchParams.delete(signature)),
          changed(url, ({ searchParams }) => {
            const text = searchParams.get(signature) ?? '';
            searchParams.set(signature, text.slice(0, -2) + last(text) + text.slice(-1));
          }),
          changed(url, ({ searchParams }) => {
            const [field = ''] = [...searchParams.keys()].filter((key) => /disposition|download/.test(key));
            searchParams.set(field, 'other.exe');
          }),
        ])
          expect([wrong, (await read(wrong)).status]).toEqual([wrong, 403]);
        for (const method of ['HEAD', 'PUT', 'DELETE', 'POST'])
          expect([403, 404, 405]).toContain(
            (await read(url, { method, ...(method === 'PUT' && { body: 'x' }) })).status,
          );
        expect((await read(url)).body).toEqual(PDF);
      });

      test('the address of an upload is no address to read, and the other way round', async () => {
        const { of, stored, address } = await person();
        const { presignedUrl } = (
          await of('upload.presign', {
            filename: 'a',
            contentType: 'application/pdf',
            size: PDF.length,
            visibility: 'private',
          })
        ).data;
        expect([403, 404]).toContain((await read(presignedUrl)).status);
        const { name } = await stored();
        const { url } = await address(name);
        expect((await put(url, PDF, { 'content-type': 'application/pdf' })).status).toBe(403);
      });

      test('with a download name, browsers save the file under it', async () => {
        const { stored, address } = await person();
        const { name } = await stored();
        // s3rver encodes the quotes of the others in its own way: unit/parts/s3-addresses has them.
        for (const [download, header] of [
          ['invoice of May-2.pdf', 'attachment; filename="invoice of May-2.pdf"'],
          [
            'Rechnung für "Ada"\r\nX: y;.pdf',
            "attachment; filename*=UTF-8''Rechnung%20f%C3%BCr%20%22Ada%22%0D%0AX%3A%20y%3B.pdf",
          ],
          ["it's (1).pdf", "attachment; filename*=UTF-8''it%27s%20%281%29.pdf"],
          ['\ud800.pdf', "attachment; filename*=UTF-8''%EF%BF%BD.pdf"],
        ].slice(0, storage === 'disk' ? 4 : 1)) {
          const { url } = await address(name, { download });
          const { status, headers } = await read(url);
          expect([status, headers.get('content-disposition')]).toEqual([200, header]);
          expect(headers.has('x')).toBe(false);
        }
      });

      test('a private image has private variants, at addresses of the same answer', async () => {
        const { image, list, address } = await person();
        const { url, variants, width, name } = await image('private');
        expect([url, width]).toEqual(['', 1600]);
        expect(variants.map((each: { url: string }) => each.url)).toEqual(variants.map(() => ''));
        expect(await list()).toMatchObject([{ name, key: `private/${name}` }]);
        const found = await address(name);
        expect(found.variants.map((each: { width: number }) => each.width)).toEqual([320, 640, 1280]);
        for (const { url: at, bytes } of found.variants) {
          const { status, body } = await read(at);
          expect([status, body.length]).toEqual([200, bytes]);
          expect([403, 404]).toContain((await read(changed(at, (plain) => (plain.search = '')))).status);
        }
      });

      test('files are public unless it is asked for', async () => {
        const { image, of, list } = await person();
        const { url, ...answer } = await image(undefined);
        expect((await read(url)).status).toBe(200);
        // interface.md, 2.4: only the answer of a private image has it.
        expect(answer).not.toHaveProperty('name');
        const { data } = await of('upload.presign', { filename: 'a', contentType: 'image/png', size: 8 });
        expect(data.key).toMatch(/^uploads\//);
        expect((await list()).map(({ visibility }: { visibility: string }) => visibility)).toEqual([
          'public',
          'public',
        ]);
        expectRefusal(
          await of('upload.presign', { filename: 'a', contentType: 'image/png', size: 8, visibility: 'secret' }),
          400,
          'VALIDATION_FAILED',
        );
      });

      test('another user gets no address, and cannot delete or publish; an unknown name is not found', async () => {
        const { stored, list } = await person();
        const { name } = await stored();
        const stranger = await person();
        for (const procedure of ['upload.address', 'upload.publish', 'upload.remove'])
          for (const given of [name, `${randomUUID()}.pdf`, '../private/x', `private/${name}`, '%00'])
            expectRefusal(await stranger.of(procedure, { name: given }), 404, 'NOT_FOUND');
        expect(await list()).toHaveLength(1);
      });

      test.each([59, 3601, 60.5, '300'])('an address for %s seconds is refused', async (expiresIn) => {
        const { stored, of } = await person();
        const { name } = await stored();
        expectRefusal(await of('upload.address', { name, expiresIn }), 400, 'VALIDATION_FAILED');
      });

      test('a service gets an address for any file; it decides who may read it', async () => {
        const { stored } = await person();
        const { name } = await stored();
        const { createServiceClient } = await loadClient();
        const asService = (token: string, input: object) =>
          procedureOf(createServiceClient({ url: uploading().stack.url, token }), 'service.fileAddress').mutate(input);
        const { url } = (await asService(TOKEN, { name, expiresIn: 60, download: 'x.pdf' })) as { url: string };
        expect((await read(url)).body).toEqual(PDF);
        await expect(asService(TOKEN, { name: `${randomUUID()}.pdf` })).rejects.toMatchObject({
          code: 'NOT_FOUND',
        });
        await expect(asService('another-token', { name })).rejects.toMatchObject({
          status: 401,
        });
      });

      test('a private file becomes public only by a copy, which counts against the quota', async () => {
        const { stored, of, list, image } = await person();
        const { name } = await stored();
        const published = await of('upload.publish', { name });
        expect(published).toMatchObject({
          code: undefined,
          data: { upload: { visibility: 'public', state: 'stored' } },
        });
        const copy = published.data.upload;
        expect(copy.name).not.toBe(name);
        const { status, body, headers } = await read(copy.url);
        expect([status, body, headers.get('content-type')]).toEqual([200, PDF, 'application/pdf']);
        expect((await of('upload.usage', {})).data).toMatchObject({ used: 2 * PDF.length, files: 2 });
        expectRefusal(await of('upload.publish', { name: copy.name }), 400, 'VALIDATION_FAILED');

        const picture = await image('private');
        const { upload } = (await of('upload.publish', { name: picture.name })).data;
        expect(upload).toMatchObject({ width: 1600, placeholder: picture.placeholder, purpose: 'post' });
        for (const { url, bytes } of upload.variants) expect((await read(url)).body).toHaveLength(bytes);
        expect((await read(upload.url)).headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
        for (const one of await list()) expect((await of('upload.remove', { name: one.name })).status).toBe(200);
        expect(await list()).toEqual([]);
        const left = (await uploading().objects.keys()).filter((key) => key.includes(picture.name.slice(0, 36)));
        expect(left).toEqual([]);
      });

      test('a file that was not uploaded, or not as declared, cannot be published', async () => {
        const { of } = await person();
        const declared = { filename: 'a', contentType: 'application/pdf', size: PDF.length, visibility: 'private' };
        const { key, presignedUrl } = (await of('upload.presign', declared)).data;
        const name = key.split('/')[1];
        expectRefusal(await of('upload.publish', { name }), 400, 'VALIDATION_FAILED');
        const script = Buffer.from('<script>'.padEnd(PDF.length));
        expect((await put(presignedUrl, script, { 'content-type': 'application/pdf' })).status).toBe(200);
        expectRefusal(await of('upload.publish', { name }), 400, 'VALIDATION_FAILED');
        expect((await of('upload.usage', {})).data.files).toBe(1);
      });

      test('the list pages over private and public files', async () => {
        const { stored, of } = await person();
        for (const visibility of ['private', 'public', 'private', 'public', 'private'])
          await stored(PDF, 'application/pdf', visibility);
        const names: string[] = [];
        for (let cursor: string | undefined, pages = 0; pages === 0 || cursor; pages++) {
          const { data } = (await of('upload.list', { limit: 1, ...(cursor && { cursor }) })) as {
            data: { data: { name: string }[]; nextCursor?: string };
          };
          names.push(...data.data.map(({ name }) => name));
          cursor = data.nextCursor;
        }
        expect(new Set(names).size).toBe(5);
        expect(names).toHaveLength(5);
      });

      test('a private image is no avatar of AVATARS=own, and changes no file as an avatar', async () => {
        const { image, list, of, address } = await person();
        const { name } = await image('private');
        const { url } = await address(name);
        await of('profile.update', { avatar: changed(url, (plain) => (plain.search = '')) });
        await of('profile.update', { avatar: null });
        expect(await list()).toMatchObject([{ name, state: 'stored' }]);
      });
    });
  },
  { SERVICE_TOKENS },
);
