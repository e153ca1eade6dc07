import { createTRPCUntypedClient, httpLink } from '@trpc/client';
import sharp, { type Sharp } from 'sharp';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { cpuTime, memory, resetPeak } from '../../bench/measure.ts';
import { childrenOf } from '../../rig/process/process-tree.ts';
import { bombs, contents, flat, impostors, jpeg, MARKER, png, polyglots } from './corpus.ts';
import {
  imageForm,
  keyOf,
  onBothStorages,
  onStorage,
  pour,
  reachable,
  type SentImage,
  sendForm,
  sendImage,
  type Uploading,
  type UploadReply,
  uploader,
} from './storage.ts';

const MEGABYTE = 1024 * 1024;

/** The documented status and body of a refused upload, and nothing else. */
const refusal = (sentence: RegExp = /./) => ({ status: 400, body: { error: expect.stringMatching(sentence) } });

/** The stored image, opened. */
async function stored({ objects }: Uploading, { status, body }: Pick<UploadReply, 'status' | 'body'>) {
  expect({ status, body }).toMatchObject({ status: 200, body: { success: true } });
  const bytes = await objects.read(keyOf(body.url));
  const { info, data } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
  const metadata = await sharp(bytes).metadata();
  expect(metadata.format).toBe('webp');
  return { bytes, pixels: data, ...info, size: bytes.length, metadata };
}

/** One user for all uploads of a test, with the user's stored objects. */
function sender(uploading: () => Uploading) {
  let user: Awaited<ReturnType<typeof uploader>>;
  beforeAll(async () => {
    user = await uploader(uploading());
  });
  const rows = () =>
    uploading().stack.database<{ object_key: string; state: string; purpose: string }>(
      'select object_key, state, purpose from uploads where user_id = ?',
      [user.id],
    );
  const contents = async () => ({ rows: await rows(), objects: (await uploading().objects.keys()).sort() });
  return {
    session: () => user.session,
    rows,
    send: (image: SentImage) => sendImage(uploading(), user.session, image),
    submit: (body: Parameters<typeof sendForm>[2], headers?: Record<string, string>) =>
      sendForm(uploading(), user.session, body, headers),
    /** Asserts a refused upload that left nothing in database and storage. */
    async expectRefused(request: () => Promise<UploadReply>, sentence?: RegExp): Promise<void> {
      const before = await contents();
      const { status, body } = await request();
      expect({ status, body }).toEqual(refusal(sentence));
      expect(await contents()).toEqual(before);
    },
  };
}

/** A valid image of this size in bytes. */
async function padded(size: number): Promise<Buffer> {
  const image = await jpeg();
  return Buffer.concat([image, Buffer.alloc(size - image.length)]);
}

onBothStorages((uploading, storage) => {
  const { session, rows, send, expectRefused } = sender(uploading);

  // checks: 61
  test('an image is stored as WebP, and the answer describes the stored file', async () => {
    const before = await rows();
    const reply = await send({ bytes: await png(), filename: 'Ada <b>&amp; "ü.png', type: 'post' });
    const documented = ['height', 'originalName', 'size', 'success', 'url', 'width'];
    expect(Object.keys(reply.body).sort()).toEqual([...documented, 'placeholder', 'variants'].sort());
    const image = await stored(uploading(), reply);
    expect(reply.body).toMatchObject({ width: 300, height: 200, size: image.size });
    expect(reply.body.originalName).toMatch(/^Ada <b>&amp; (?:"|%22)ü\.png$/);
    expect(reply.body.url).toMatch(/\/uploads\/[0-9a-f-]{36}\.webp$/);
    const row = { object_key: keyOf(reply.body.url), state: 'kept', purpose: 'post' };
    expect(await rows()).toEqual(expect.arrayContaining([...before, row]));
    expect(await rows()).toHaveLength(before.length + 1);

    const published = await fetch(reachable(reply.body.url));
    expect(published.status).toBe(200);
    expect(published.headers.get('content-type')).toBe('image/webp');
    expect(published.headers.get('cache-control')).toContain('immutable');
    // A custom storage has the headers of its operator.
    if (storage === 'disk') expect(published.headers.get('x-content-type-options')).toBe('nosniff');
    expect(Buffer.from(await published.arrayBuffer()).equals(image.bytes)).toBe(true);
  });

  // checks: 60
  test.each(impostors)('%s: 400, nothing stored', async (_name, make, contentType) => {
    const bytes = await make();
    await expectRefused(() => send({ bytes, contentType }));
  });

  test('a page of another site cannot upload', async () => {
    const before = await rows();
    const { status, body } = await sendForm(uploading(), session(), imageForm({ bytes: await png() }), {
      origin: 'https://evil.test',
    });
    expect({ status, code: body.code }).toEqual({ status: 403, code: 'ORIGIN_MISMATCH' });
    expect(await rows()).toEqual(before);
  });

  describe('over tRPC', () => {
    const client = () =>
      createTRPCUntypedClient({
        links: [httpLink({ url: `${uploading().stack.url}/trpc`, headers: { cookie: `auth_session=${session()}` } })],
      });

    test('the same upload has the same result', async () => {
      const body = await client().mutation('upload.image', imageForm({ bytes: await png(), type: 'avatar' }));
      expect(await stored(uploading(), { status: 200, body })).toMatchObject({ width: 512 });
    });

    test.each([
      ['no image', async () => imageForm({ bytes: Buffer.from('GIF89a') })],
      ['more than 5 MB', async () => imageForm({ bytes: await padded(6 * MEGABYTE), contentType: 'image/jpeg' })],
      ['no form', async () => ({ type: 'post' })],
    ])('%s: refused with a code', async (_name, make) => {
      await expect(client().mutation('upload.image', await make())).rejects.toMatchObject({
        data: { code: 'VALIDATION_FAILED', httpStatus: 400 },
      });
    });

    test('a form is refused at any other procedure', async () => {
      await expect(
        client().mutation('profile.update', imageForm({ bytes: Buffer.alloc(MEGABYTE) })),
      ).rejects.toMatchObject({ data: { httpStatus: 415 } });
    });
  });
});

// Independent of the storage, so one is enough.
onStorage('disk', (uploading) => {
  const { session, rows, send, submit, expectRefused } = sender(uploading);

  // checks: 57
  test('of all pairs of type and content, only JPEG and PNG in an allowed type are accepted', async () => {
    // Types are case-insensitive.
    const allowed = ['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'IMAGE/Png'];
    const others = ['image/avif', 'image/svg+xml', 'text/html', 'application/pdf', 'application/octet-stream'];
    const before = await rows();
    const taken: string[] = [];
    for (const [name, make] of Object.entries(contents)) {
      const bytes = await make();
      for (const contentType of [...allowed, ...others]) {
        const { status, body } = await send({ bytes, contentType, filename: 'image.png' });
        if (status === 200) taken.push(`${name} as ${contentType}`);
        else expect([name, contentType, { status, body }]).toEqual([name, contentType, refusal()]);
      }
    }
    expect(taken).toEqual(['JPEG', 'PNG'].flatMap((name) => allowed.map((type) => `${name} as ${type}`)));
    expect(await rows()).toHaveLength(before.length + taken.length);
  });

  // checks: 64
  test.each([
    ['avatar', 300, 200, 512, 512],
    ['avatar', 2000, 900, 512, 512],
    ['post', 300, 200, 300, 200],
    ['post', 3200, 1600, 1600, 800],
    ['post', 1000, 4000, 400, 1600],
    ['post', 16_383, 10, 1600, 1],
  ])('%s: %i×%i becomes %i×%i', async (type, width, height, toWidth, toHeight) => {
    const reply = await send({ bytes: await png(width, height), type });
    expect(await stored(uploading(), reply)).toMatchObject({ width: toWidth, height: toHeight });
    expect(reply.body).toMatchObject({ width: toWidth, height: toHeight });
  });

  test('an avatar is cropped from the centre', async () => {
    const side = await flat(300, 300, '#ff0000').png().toBuffer();
    const bytes = await flat(900, 300, '#00ff00')
      .composite([
        { input: side, left: 0, top: 0 },
        { input: side, left: 600, top: 0 },
      ])
      .png()
      .toBuffer();
    const { pixels, channels } = await stored(uploading(), await send({ bytes, type: 'avatar' }));
    // The edge of the crop blends slightly with its neighbour.
    for (const at of [2, 509, 512 * 511 + 2, 512 * 512 - 3]) expect(pixels[at * channels + 1]).toBeGreaterThan(200);
  });

  // checks: 62
  test('orientation is applied and removed', async () => {
    const red = await flat(100, 100, '#ff0000').png().toBuffer();
    const bytes = await flat(300, 100, '#0000ff')
      .composite([{ input: red, left: 0, top: 0 }])
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer();
    const reply = await send({ bytes, contentType: 'image/jpeg' });
    const { width, height, pixels, channels, metadata } = await stored(uploading(), reply);
    expect([width, height, metadata.orientation]).toEqual([100, 300, undefined]);
    // Turned clockwise: the left side is on top.
    expect(pixels[(50 * 100 + 50) * channels]).toBeGreaterThan(200);
    expect(pixels[(250 * 100 + 50) * channels + 2]).toBeGreaterThan(200);
  });

  // checks: 62
  test.each([
    // A palette of few colours: the nearest, d11000, is some way off.
    ['CMYK', '#d02020', (image) => image.toColourspace('cmyk').jpeg(), 'image/jpeg', 40],
    ['16 bits', '#d02020', (image) => image.toColourspace('rgb16').png(), 'image/png', 8],
    ['grey', '#808080', (image) => image.greyscale().png(), 'image/png', 8],
    // P3 has other numbers for it.
    ['the P3 colours', '#f01010', (image) => image.withIccProfile('p3').png(), 'image/png', 8],
  ] as [string, string, (image: Sharp) => Sharp, string, number][])(
    '%s become sRGB in 8 bits, without a profile',
    async (_name, colour, encode, contentType, tolerance) => {
      const bytes = await encode(flat(60, 40, colour)).toBuffer();
      const { metadata, pixels } = await stored(uploading(), await send({ bytes, contentType }));
      expect(metadata).toMatchObject({ space: 'srgb', depth: 'uchar', hasProfile: false });
      // The same visible colour: other colour spaces are converted, not copied.
      for (const [channel, value] of Buffer.from(colour.slice(1), 'hex').entries())
        expect(Math.abs((pixels[channel] ?? 0) - value)).toBeLessThan(tolerance);
    },
  );

  // checks: 61, 62
  test.each(polyglots)('%s: the stored image contains none of it', async (_name, make, contentType) => {
    const { bytes, metadata } = await stored(uploading(), await send({ bytes: await make(), contentType }));
    expect(bytes.includes(MARKER)).toBe(false);
    expect([metadata.exif, metadata.xmp, metadata.icc, metadata.iptc]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  describe('a decompression bomb', () => {
    beforeEach(async () => {
      // The first image costs most: code is loaded and compiled, here and in the conversion process.
      for (let i = 0; i < 3; i++) await send({ bytes: await png() });
    });

    // checks: 59
    test.each(bombs)('of %s costs little time and memory', async (_name, make, status) => {
      const bytes = make();
      const service = uploading().stack.services[0]?.pid ?? 0;
      const processes = [service, ...childrenOf(service)];
      const total = (measure: (pid: number) => number) => processes.reduce((sum, pid) => sum + measure(pid), 0);
      for (const pid of processes) resetPeak(pid);
      const before = { cpu: total(cpuTime), memory: total(memory) };
      const reply = await send({ bytes });
      const peak = total((pid) => memory(pid, 'peak'));
      const cost = { cpu: total(cpuTime) - before.cpu, memory: peak - before.memory };
      expect(childrenOf(service)).toEqual(processes.slice(1));
      if (status === 200) await stored(uploading(), reply);
      else expect({ status: reply.status, body: reply.body }).toEqual(refusal());
      expect(cost.cpu).toBeLessThan(status === 200 ? 2000 : 200);
      expect(cost.memory).toBeLessThan(300);
    });
  });

  describe('the multipart form', () => {
    const image = async () => new File([new Uint8Array(await png())], 'a.png', { type: 'image/png' });

    // checks: 58
    test('5 MB are accepted, one byte more is refused', async () => {
      const exactly: SentImage = { bytes: await padded(5 * MEGABYTE), contentType: 'image/jpeg' };
      await stored(uploading(), await send(exactly));
      for (const size of [5 * MEGABYTE + 1, 20 * MEGABYTE]) {
        const bytes = await padded(size);
        await expectRefused(() => send({ ...exactly, bytes }), /larger than 5 MB/);
      }
    });

    // checks: 58
    test('the limit holds for a body of unknown length', async () => {
      const inChunks = async (size: number) => {
        const encoded = new Response(imageForm({ bytes: await padded(size), contentType: 'image/jpeg' }));
        const type = { 'content-type': encoded.headers.get('content-type') ?? '' };
        return () => submit(encoded.body as ReadableStream, type);
      };
      await stored(uploading(), await (await inChunks(5 * MEGABYTE))());
      await expectRefused(await inChunks(5 * MEGABYTE + 1), /larger than 5 MB/);
    });

    test('an image is accepted in pieces, even if they split the signature', async () => {
      const encoded = new Response(imageForm({ bytes: await png() }));
      const type = { 'content-type': encoded.headers.get('content-type') ?? '' };
      const form = await encoded.bytes();
      const pieces = Array.from({ length: form.length }, (_, n) => form.subarray(n, n + 1));
      await stored(uploading(), await submit(ReadableStream.from(pieces), type));
    });

    // checks: 58, 64
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
        'a list of types',
        [
          ['file', 'image'],
          ['type[]', 'post'],
        ],
        /avatar or post/,
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
      const form = new FormData();
      for (const [name, value] of fields) form.append(name, value === 'image' ? await image() : value);
      await expectRefused(() => submit(form), sentence);
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
      await expectRefused(() => submit(body, { 'content-type': contentType }));
    });

    /** A raw form, with the file under a raw name. */
    const written = async (name: string) =>
      Buffer.concat([
        Buffer.from('--b\r\nContent-Disposition: form-data; name="type"\r\n\r\npost\r\n'),
        Buffer.from(`--b\r\nContent-Disposition: form-data; name="file"; ${name}\r\nContent-Type: image/png\r\n\r\n`),
        await png(),
        Buffer.from('\r\n--b--\r\n'),
      ]);
    const contentType = 'multipart/form-data; boundary=b';

    // checks: 58
    test.each([
      ['a file', 'name="file"; filename="a"', 'Transfer-Encoding: chunked'],
      ['a field', 'name="type"', 'Transfer-Encoding: chunked'],
      ['a file', 'name="file"; filename="a"', `Content-Length: ${64 * MEGABYTE}`],
    ])(
      '%s without end (%s; %s): 400, the connection is closed early, and memory stays bounded',
      async (_, name, length) => {
        const before = await rows();
        const pid = uploading().stack.services[0]?.pid ?? 0;
        resetPeak(pid);
        const memoryBefore = memory(pid);
        const headers = [`Cookie: auth_session=${session()}`, `Content-Type: ${contentType}`, length];
        const first = `--b\r\nContent-Disposition: form-data; ${name}\r\n\r\n`;
        const { answer, sent } = await pour(uploading(), headers, first, 64 * MEGABYTE);
        expect(answer).toMatch(/^HTTP\/1\.1 400 /);
        expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual(refusal(/larger than 5 MB/).body);
        // Not all: how much the sockets take before the service closes depends on the machine.
        expect(sent).toBeLessThan(64 * MEGABYTE);
        expect(memory(pid, 'peak') - memoryBefore).toBeLessThan(64);
        expect(await rows()).toEqual(before);
      },
    );

    // checks: 58
    test('a length shorter than the form cuts it off, and the rest is not another request', async () => {
      const before = await rows();
      const form = await written('filename="a"');
      const headers = [`Cookie: auth_session=${session()}`, `Content-Type: ${contentType}`];
      const { answer } = await pour(uploading(), [...headers, `Content-Length: ${form.length - 20}`], form);
      const statuses = answer.match(/^HTTP\/1\.1 \d+/gm) ?? [];
      expect(new Set(statuses)).toEqual(new Set(['HTTP/1.1 400']));
      expect(await rows()).toEqual(before);
    });

    // checks: 63
    test.each([
      ['<img src=x onerror=alert(1)>', /^<img src=x onerror=alert\(1\)>$/],
      ['../../etc/passwd', /^\.\.\/\.\.\/etc\/passwd$/],
      ['a\r\nX-Evil: onerror', /^a%0D%0AX-Evil: onerror$/],
      ['x'.repeat(10_000), /^x{255}$/],
      ['😀'.repeat(300), /^😀{255}$/u],
    ])('the name %j is only text', async (filename, expected) => {
      const { status, body, headers } = await send({ bytes: await png(), filename });
      expect(status).toBe(200);
      expect(body.originalName).toMatch(expected);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(JSON.stringify([...headers])).not.toMatch(/onerror|x-evil/i);
      expect(body.url).toMatch(/\/uploads\/[0-9a-f-]{36}\.webp$/);
    });

    // checks: 63
    test('a line break in the name does not end a header of the answer', async () => {
      const sendNamed = async (name: string) => submit(await written(name), { 'content-type': contentType });
      // The text after it is another header of the part.
      const { status, body, headers } = await sendNamed('filename="a"\r\nX-Evil: y');
      expect([status, body.originalName, headers.get('x-evil')]).toEqual([200, 'a', null]);
      await expectRefused(() => sendNamed("filename*=utf-8''a%0D%0AX-Evil%3A%20y"));
    });
  });

  test('without a session: 401', async () => {
    const { status, body } = await sendImage(uploading(), undefined, { bytes: await png() });
    expect({ status, body }).toEqual({ status: 401, body: { message: 'Please log in', code: 'UNAUTHENTICATED' } });
  });
});
