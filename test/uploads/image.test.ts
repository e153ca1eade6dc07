import { createHash } from 'node:crypto';
import { createTRPCUntypedClient, httpLink } from '@trpc/client';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { cpuTime } from '../bench/measure.ts';
import { bombs, flat, impostors, jpeg, MARKER, photograph, png, polyglots } from './corpus.ts';
import {
  imageForm,
  keyOf,
  onBothStorages,
  reachable,
  type SentImage,
  sendForm,
  sendImage,
  type Uploading,
  type UploadReply,
  uploader,
} from './storage.ts';

const MEGABYTE = 1024 * 1024;

/** A refusal of the upload: the contract's status and body, and nothing else in it. */
function expectRefused({ status, body }: UploadReply, sentence: RegExp = /./): void {
  expect({ status, body }).toEqual({ status: 400, body: { error: expect.stringMatching(sentence) } });
}

/** The stored image, opened. */
async function stored({ objects }: Uploading, { status, body }: UploadReply) {
  expect({ status, body }).toMatchObject({ status: 200, body: { success: true } });
  const bytes = await objects.read(keyOf(body.url));
  const { info, data } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
  const metadata = await sharp(bytes).metadata();
  expect(metadata.format).toBe('webp');
  return { bytes, pixels: data, ...info, size: bytes.length, metadata };
}

onBothStorages((uploading, storage) => {
  /** The objects under a user's rows, whatever other tests do meanwhile. */
  const rowsOf = (userId: string) =>
    uploading().stack.database<{ object_key: string; state: string; purpose: string }>(
      'select object_key, state, purpose from uploads where user_id = ?',
      [userId],
    );

  test('an image is stored as WebP, and the answer describes what is stored', async () => {
    const { id, session } = await uploader(uploading());
    const reply = await sendImage(uploading(), session, {
      bytes: await png(),
      filename: 'Ada <b>&amp; "ü.png',
      type: 'post',
    });
    expect(Object.keys(reply.body).sort()).toEqual(['height', 'originalName', 'size', 'success', 'url', 'width']);
    const image = await stored(uploading(), reply);
    expect(reply.body).toMatchObject({ width: 300, height: 200, size: image.size });
    expect(reply.body.originalName).toMatch(/^Ada <b>&amp; (?:"|%22)ü\.png$/);
    expect(reply.body.url).toMatch(/\/uploads\/[0-9a-f-]{36}\.webp$/);
    expect(await rowsOf(id)).toEqual([{ object_key: keyOf(reply.body.url), state: 'kept', purpose: 'post' }]);

    const published = await fetch(reachable(reply.body.url));
    expect(published.status).toBe(200);
    expect(published.headers.get('content-type')).toBe('image/webp');
    expect(published.headers.get('cache-control')).toContain('immutable');
    expect(Buffer.from(await published.arrayBuffer()).equals(image.bytes)).toBe(true);
  });

  test.each([
    ['avatar', 300, 200, 512, 512],
    ['avatar', 2000, 900, 512, 512],
    ['post', 300, 200, 300, 200],
    ['post', 3200, 1600, 1600, 800],
    ['post', 1000, 4000, 400, 1600],
    ['post', 16_383, 10, 1600, 1],
  ])('%s: %i×%i becomes %i×%i', async (type, width, height, toWidth, toHeight) => {
    const { session } = await uploader(uploading());
    const reply = await sendImage(uploading(), session, { bytes: await png(width, height), type });
    expect(await stored(uploading(), reply)).toMatchObject({ width: toWidth, height: toHeight });
    expect(reply.body).toMatchObject({ width: toWidth, height: toHeight });
  });

  test('an avatar is cut from the centre', async () => {
    const { session } = await uploader(uploading());
    const side = await flat(300, 300, '#ff0000').png().toBuffer();
    const bytes = await flat(900, 300, '#00ff00')
      .composite([
        { input: side, left: 0, top: 0 },
        { input: side, left: 600, top: 0 },
      ])
      .png()
      .toBuffer();
    const { pixels, channels } = await stored(
      uploading(),
      await sendImage(uploading(), session, { bytes, type: 'avatar' }),
    );
    // The edge of the cut mixes with its neighbour a little.
    for (const at of [2, 509, 512 * 511 + 2, 512 * 512 - 3]) expect(pixels[at * channels + 1]).toBeGreaterThan(200);
  });

  test('orientation is applied and forgotten', async () => {
    const { session } = await uploader(uploading());
    const red = await flat(100, 100, '#ff0000').png().toBuffer();
    const bytes = await flat(300, 100, '#0000ff')
      .composite([{ input: red, left: 0, top: 0 }])
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer();
    const reply = await sendImage(uploading(), session, { bytes, contentType: 'image/jpeg' });
    const { width, height, pixels, channels, metadata } = await stored(uploading(), reply);
    expect([width, height, metadata.orientation]).toEqual([100, 300, undefined]);
    // Turned clockwise: what was at the left is at the top.
    expect(pixels[(50 * 100 + 50) * channels]).toBeGreaterThan(200);
    expect(pixels[(250 * 100 + 50) * channels + 2]).toBeGreaterThan(200);
  });

  test.each([
    ['CMYK', () => flat(60, 40, '#d02020').toColourspace('cmyk').jpeg().toBuffer(), 'image/jpeg'],
    ['16 bits', () => flat(60, 40, '#d02020').toColourspace('rgb16').png().toBuffer(), 'image/png'],
    ['grey', () => flat(60, 40).greyscale().png().toBuffer(), 'image/png'],
    ['the P3 colours', () => flat(60, 40, '#d02020').withIccProfile('p3').png().toBuffer(), 'image/png'],
  ])('%s become sRGB in 8 bits, without a profile', async (name, make, contentType) => {
    const { session } = await uploader(uploading());
    const { metadata, pixels } = await stored(
      uploading(),
      await sendImage(uploading(), session, { bytes: await make(), contentType }),
    );
    expect(metadata).toMatchObject({ space: 'srgb', depth: 'uchar', hasProfile: false });
    if (name === 'grey') return;
    // The same colour to the eye: what was written down in another space was converted, not taken over.
    for (const [channel, value] of [0xd0, 0x20, 0x20].entries())
      expect(Math.abs((pixels[channel] ?? 0) - value)).toBeLessThan(32);
  });

  test.each(polyglots)('%s: nothing of it is in what is stored', async (_name, make, contentType) => {
    const { session } = await uploader(uploading());
    const { bytes, metadata } = await stored(
      uploading(),
      await sendImage(uploading(), session, { bytes: await make(), contentType }),
    );
    expect(bytes.includes(MARKER)).toBe(false);
    expect([metadata.exif, metadata.xmp, metadata.icc, metadata.iptc]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test.each(impostors)('%s: 400, nothing stored', async (_name, make, contentType) => {
    const { id, session } = await uploader(uploading());
    const bytes = await make();
    expectRefused(await sendImage(uploading(), session, { bytes, contentType }));
    expect(await rowsOf(id)).toEqual([]);
  });

  test.each(bombs)('%s: cheap for us', async (_name, make, expected) => {
    const { session } = await uploader(uploading());
    const bytes = make();
    const pid = uploading().stack.services[0]?.pid ?? 0;
    const before = cpuTime(pid);
    const reply = await sendImage(uploading(), session, { bytes });
    const cpuMs = cpuTime(pid) - before;
    if (reply.status === 200 && expected !== 400) await stored(uploading(), reply);
    else expectRefused(reply);
    expect(cpuMs).toBeLessThan(reply.status === 200 ? 5000 : 1000);
  });

  test('PNG bytes that are declared as JPEG are an image', async () => {
    const { session } = await uploader(uploading());
    await stored(uploading(), await sendImage(uploading(), session, { bytes: await png(), contentType: 'image/jpeg' }));
  });

  describe('what surrounds the file', () => {
    const padded = async (size: number) => {
      const image = await jpeg();
      return Buffer.concat([image, Buffer.alloc(size - image.length)]);
    };

    test('5 MB are accepted, one byte more is not', async () => {
      const { session } = await uploader(uploading());
      const exactly: SentImage = { bytes: await padded(5 * MEGABYTE), contentType: 'image/jpeg' };
      await stored(uploading(), await sendImage(uploading(), session, exactly));
      expectRefused(
        await sendImage(uploading(), session, { ...exactly, bytes: await padded(5 * MEGABYTE + 1) }),
        /larger than 5 MB/,
      );
      expectRefused(
        await sendImage(uploading(), session, { ...exactly, bytes: await padded(20 * MEGABYTE) }),
        /larger than 5 MB/,
      );
    });

    test.each([
      ['no file', [['type', 'post']], /file is missing/],
      ['no type', [['file', 'image']], /avatar or post/],
      [
        'another type',
        [
          ['file', 'image'],
          ['type', 'banner'],
        ],
        /avatar or post/,
      ],
      [
        'a type that is a file',
        [
          ['file', 'text'],
          ['type', 'image'],
        ],
        /./,
      ],
      [
        'two types',
        [
          ['file', 'image'],
          ['type', 'post'],
          ['type', 'avatar'],
        ],
        /twice/,
      ],
      [
        'two files',
        [
          ['file', 'image'],
          ['file', 'image'],
          ['type', 'post'],
        ],
        /too many parts/,
      ],
      [
        'a hundred fields',
        [...Array.from({ length: 100 }, (_, i) => [`f${i}`, 'x']), ['file', 'image'], ['type', 'post']],
        /too many parts/,
      ],
      [
        'a field of 1 MB',
        [
          ['type', 'x'.repeat(MEGABYTE)],
          ['file', 'image'],
        ],
        /too long/,
      ],
    ] as [string, [string, string][], RegExp][])('%s: 400', async (_name, fields, sentence) => {
      const { id, session } = await uploader(uploading());
      const image = new File([new Uint8Array(await png())], 'a.png', { type: 'image/png' });
      const form = new FormData();
      for (const [name, value] of fields) {
        if (value === 'image') form.append(name, image);
        else form.append(name, value);
      }
      expectRefused(await sendForm(uploading(), session, form), sentence);
      expect(await rowsOf(id)).toEqual([]);
    });

    test.each([
      ['JSON', '{"type":"post"}', 'application/json'],
      ['no boundary', 'x', 'multipart/form-data'],
      [
        'a body that ends in the middle',
        '--b\r\nContent-Disposition: form-data; name="type"\r\n\r\npo',
        'multipart/form-data; boundary=b',
      ],
      ['an empty form', '', 'multipart/form-data; boundary=b'],
      [
        'a long part without a name',
        `--b\r\nContent-Disposition: form-data\r\n\r\n${'x'.repeat(2000)}\r\n--b--\r\n`,
        'multipart/form-data; boundary=b',
      ],
      [
        'a file without a name',
        '--b\r\nContent-Disposition: form-data; filename="a"\r\n\r\nx\r\n--b--\r\n',
        'multipart/form-data; boundary=b',
      ],
      [
        'a part without a name',
        '--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n',
        'multipart/form-data; boundary=b',
      ],
      [
        'a header of 1 MB',
        `--b\r\nContent-Disposition: form-data; name="${'n'.repeat(MEGABYTE)}"\r\n\r\nx\r\n--b--\r\n`,
        'multipart/form-data; boundary=b',
      ],
      [
        '__proto__ for a name',
        '--b\r\nContent-Disposition: form-data; name="__proto__"\r\n\r\nx\r\n--b--\r\n',
        'multipart/form-data; boundary=b',
      ],
    ])('%s: 400', async (_name, body, contentType) => {
      const { session } = await uploader(uploading());
      expectRefused(await sendForm(uploading(), session, body, { 'content-type': contentType }));
    });

    test.each([
      ['<img src=x onerror=alert(1)>', /^<img src=x onerror=alert\(1\)>$/],
      ['../../etc/passwd', /^\.\.\/\.\.\/etc\/passwd$/],
      ['x'.repeat(10_000), /^x{255}$/],
      ['😀'.repeat(300), /^😀{255}$/u],
    ])('the name %s is only ever text', async (filename, expected) => {
      const { session } = await uploader(uploading());
      const { status, body, headers } = await sendImage(uploading(), session, { bytes: await png(), filename });
      expect(status).toBe(200);
      expect(body.originalName).toMatch(expected);
      expect(JSON.stringify([...headers])).not.toContain('onerror');
      expect(body.url).toMatch(/\/uploads\/[0-9a-f-]{36}\.webp$/);
    });
  });

  // Only the real stack has a store that can be listened to.
  if (storage === 'S3')
    test('a session is looked up once for an image', async () => {
      const { session } = await uploader(uploading());
      const key = `session:${createHash('sha256').update(session).digest('base64url')}`;
      const listener = await uploading().stack.redis?.monitor();
      const lookUps: string[] = [];
      listener?.on('monitor', (_time: string, [command = '', ...keys]: string[]) => {
        if (command.toLowerCase() === 'get' && keys[0] === key) lookUps.push(key);
      });
      expect((await sendImage(uploading(), session, { bytes: await png() })).status).toBe(200);
      // What Redis was asked before this one has been heard once this one is.
      const heard = new Promise((resolve) =>
        listener?.on('monitor', (_time, [, name]) => name === 'end' && resolve(name)),
      );
      await uploading().stack.redis?.get('end');
      await heard;
      listener?.disconnect();
      expect(lookUps).toEqual([key]);
    });

  test('the media type of an image is compared without regard to case', async () => {
    const { session } = await uploader(uploading());
    const image = (await png()).toString('latin1');
    const part = 'content-disposition: form-data; name=';
    const body = `--b\r\n${part}"type"\r\n\r\npost\r\n--b\r\n${part}"file"; filename="a"\r\ncontent-type: IMAGE/Png\r\n\r\n${image}\r\n--b--\r\n`;
    await stored(
      uploading(),
      await sendForm(uploading(), session, Buffer.from(body, 'latin1'), {
        'content-type': 'multipart/form-data; boundary=b',
      }),
    );
  });

  test('without a session: 401 as everywhere', async () => {
    const { status, body } = await sendImage(uploading(), undefined, { bytes: await png() });
    expect({ status, body }).toEqual({ status: 401, body: { message: 'Please log in', code: 'UNAUTHENTICATED' } });
  });

  test('a page of another site cannot upload', async () => {
    const { session } = await uploader(uploading());
    const { status, body } = await sendForm(uploading(), session, imageForm({ bytes: await png() }), {
      origin: 'https://evil.test',
    });
    expect({ status, code: body.code }).toEqual({ status: 403, code: 'ORIGIN_MISMATCH' });
  });

  describe('over tRPC', () => {
    const client = (session: string) =>
      createTRPCUntypedClient({
        links: [httpLink({ url: `${uploading().stack.url}/trpc`, headers: { cookie: `auth_session=${session}` } })],
      });

    test('the same upload has the same result', async () => {
      const { session } = await uploader(uploading());
      const body = await client(session).mutation('upload.image', imageForm({ bytes: await png(), type: 'avatar' }));
      expect(await stored(uploading(), { status: 200, headers: new Headers(), body })).toMatchObject({ width: 512 });
    });

    test.each([
      ['no image', async () => imageForm({ bytes: Buffer.from('GIF89a') }), 'VALIDATION_FAILED'],
      [
        'more than 5 MB',
        async () =>
          imageForm({
            bytes: await photograph(300, 300).then((image) => Buffer.concat([image, Buffer.alloc(6 * MEGABYTE)])),
          }),
        'VALIDATION_FAILED',
      ],
      ['no form', async () => ({ type: 'post' }), 'VALIDATION_FAILED'],
    ])('%s: refused with a code', async (_name, make, code) => {
      const { session } = await uploader(uploading());
      await expect(client(session).mutation('upload.image', await make())).rejects.toMatchObject({
        data: { code, httpStatus: 400 },
      });
    });

    test('a form goes nowhere else', async () => {
      const { session } = await uploader(uploading());
      await expect(
        client(session).mutation('profile.update', imageForm({ bytes: Buffer.alloc(MEGABYTE) })),
      ).rejects.toMatchObject({ data: { httpStatus: expect.toBeOneOf([400, 413, 415]) } });
    });
  });
});
