import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { flat, jpeg, png } from './corpus.ts';
import { imageForm, keyOf, onStorage, put, sendForm, uploader } from './storage.ts';

/** The table of docs/files.md: what is taken of each kind of file, and the messages of what is refused. */
const document = readFileSync(join(import.meta.dirname, '../../../docs/files.md'), 'utf8');
const [, table = ''] = /^## What is taken\n(.*?)^## /ms.exec(document) ?? [];
const rows = new Map(
  [...table.matchAll(/^\| (.+?) \| (.+?) \| (.+?) \|$/gm)].map(([, file = '', ...cells]) => [file, cells]),
);

const animated = async (format: 'gif' | 'webp') => {
  const frames = await flat(40, 80).raw().toBuffer();
  return sharp(frames, { raw: { width: 40, height: 80, channels: 3, pageHeight: 40 } })
    [format]()
    .toBuffer();
};

/** ISO/IEC 23008-12: the file type box of an iPhone's photo, and nothing to decode. */
const heic = () => Buffer.concat([Buffer.from('0000001866747970686569630000000068656963', 'hex'), Buffer.alloc(200)]);

/** A PNG of two frames, by its `acTL` chunk: a decoder without animation reads the first one. */
const apng = async () => {
  const image = await png(40, 40);
  const control = Buffer.from('000000086163544c0000000200000000f38d9370', 'hex');
  return Buffer.concat([image.subarray(0, 33), control, image.subarray(33)]);
};

const svg = () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');

const sources: [file: string, type: string, make: () => Buffer | Promise<Buffer>][] = [
  ['JPEG', 'image/jpeg', () => jpeg(40, 40)],
  ['PNG', 'image/png', () => png(40, 40)],
  ['PNG, animated (APNG)', 'image/png', apng],
  ['APNG, declared as `image/apng`', 'image/apng', apng],
  ['GIF, also animated', 'image/gif', () => animated('gif')],
  ['WebP, also animated', 'image/webp', () => animated('webp')],
  ['AVIF', 'image/avif', () => flat(40, 40).avif().toBuffer()],
  ['HEIC, HEIF', 'image/heic', heic],
  ['TIFF', 'image/tiff', () => flat(40, 40).tiff().toBuffer()],
  ['SVG', 'image/svg+xml', svg],
];

onStorage('disk', (uploading) => {
  test.each(sources)('%s: as docs/files.md says', async (file, type, make) => {
    const { session } = await uploader(uploading());
    const bytes = await make();
    const [asImage = '', asFile = ''] = rows.get(file) ?? [];
    const image = await sendForm(uploading(), session, imageForm({ bytes, contentType: type }));
    const [, message] = /^400 `(.+)`$/.exec(asImage) ?? [];
    if (message === undefined) expect([asImage, image.status]).toEqual([expect.stringMatching(/^converted/), 200]);
    else expect([image.status, image.body]).toEqual([400, { error: message }]);
    if (image.status === 200) {
      const stored = await sharp(await uploading().objects.read(keyOf(image.body.url))).metadata();
      expect(stored).toMatchObject({ format: 'webp', width: 40, height: 40 });
      expect(stored.pages ?? 1).toBe(1);
    }

    const call = callerOf('rest', uploading().stack.url);
    const declared = { filename: 'a', contentType: type, size: bytes.length };
    const address = await call('upload.presign', declared, { session });
    if (asFile.startsWith('400')) {
      expect(address).toMatchObject({ status: 400, details: { contentType: { rule: 'not_allowed' } } });
      return;
    }
    expect([asFile, address.status]).toEqual(['as it is', 200]);
    await put(address.data.presignedUrl, bytes, { 'content-type': type });
    expect(await call('upload.confirm', { key: address.data.key }, { session })).toMatchObject({ status: 200 });
    expect((await uploading().objects.read(address.data.key)).equals(bytes)).toBe(true);
  });
});
