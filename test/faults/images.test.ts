import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { matchesSignature } from '../../server/lib/media-types.ts';
import { imageTypes } from '../../server/shared/image-limits.ts';
import { toRefusal, toWebp } from '../../server/uploads/images/conversion.ts';
import { requireAffordable } from '../../server/uploads/images/image-cost.ts';
import { createImages } from '../../server/uploads/images/images.ts';
import { arithmeticBomb, emptyPng, photograph, profileBomb, scanBomb, textBomb } from '../contract/uploads/corpus.ts';

const SECOND = 1e6;
/** The work of the conversion process, in this process, to measure its CPU and memory. */
const convert = async (sent: Buffer) => {
  const type = imageTypes.find((known) => matchesSignature(known, sent)) ?? 'image/png';
  const { bytes } = await requireAffordable(sent, type);
  return toWebp(bytes, 'post', []);
};

/** CPU time of the whole process; waiting of other work does not add to it. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / SECOND;
}

const whole = { width: 6000, height: 4000 };
const withProfile = async () =>
  sharp(await photograph(6000, 4000, 60))
    .withIccProfile('p3')
    .jpeg({ quality: 60 })
    .toBuffer();

describe('a refused image costs nothing', () => {
  test.each([
    ['one column of 24 million pixels', emptyPng({ width: 1, height: 24_000_000 })],
    ['24 megapixels, interlaced, 16 bits, RGBA', emptyPng({ ...whole, bitDepth: 16, colorType: 6, interlaced: true })],
    ['a JPEG of 100000 scans', scanBomb(100_000)],
    ['a JPEG of 127 scans in arithmetic coding', arithmeticBomb(127)],
    ['a colour profile of 30000 processing elements', profileBomb(30_000)],
  ])('%s', async (_name, bytes) => {
    expect(await cpuOf(() => expect(convert(bytes)).rejects.toMatchObject({ status: 400 }))).toBeLessThan(0.5);
  });
});

// checks: 59
describe('an accepted image costs less than 5 seconds of CPU', () => {
  test.each<[string, () => Buffer | Promise<Buffer>]>([
    ['a column of 16383 pixels', () => emptyPng({ width: 1, height: 16_383 })],
    ['16383×1464, 16 bits, RGBA', () => emptyPng({ width: 16_383, height: 1464, bitDepth: 16, colorType: 6 })],
    ['1464×16383, 16 bits, RGBA', () => emptyPng({ width: 1464, height: 16_383, bitDepth: 16, colorType: 6 })],
    ['24 megapixels, interlaced, RGBA', () => emptyPng({ ...whole, colorType: 6, interlaced: true })],
    [
      '12 megapixels, interlaced, 16 bits, RGBA',
      () => emptyPng({ width: 4000, height: 3000, bitDepth: 16, colorType: 6, interlaced: true }),
    ],
    ['a JPEG of 128 scans', () => scanBomb(128)],
    ['a photograph of 24 megapixels with a colour profile', withProfile],
    [
      'the same, progressive',
      async () =>
        sharp(await withProfile())
          .keepIccProfile()
          .jpeg({ progressive: true })
          .toBuffer(),
    ],
  ])('%s', async (_name, make) => {
    const bytes = await make();
    expect(await cpuOf(() => convert(bytes))).toBeLessThan(5);
  });
});

test('text chunks of a PNG are never decompressed', async () => {
  const bytes = textBomb(100);
  const before = process.memoryUsage.rss();
  expect(await convert(bytes)).toMatchObject({ width: 64, height: 64 });
  expect(process.memoryUsage.rss() - before).toBeLessThan(200e6);
});

describe('a fault of the machine is not reported as a fault of the image', () => {
  test.each([
    'timeout: 42% complete\nVipsImage: killed for image "temp-94"',
    'vips_tracked: out of memory --- size == 96MB',
    'VipsJpeg: Insufficient memory (case 4)',
    'pngload_buffer: libspng read error\nOut of memory',
    'std::bad_alloc',
    'Cannot allocate memory',
    'unable to create thread: Resource temporarily unavailable',
  ])('%s: 503 with Retry-After', (message) => {
    expect(toRefusal(new Error(message))).toMatchObject({ status: 503, retryAfter: expect.any(Number) });
  });

  test.each([
    'VipsJpeg: premature end of JPEG image',
    'pngload_buffer: libpng read error',
    'Input buffer contains unsupported image format',
  ])('%s: 400', (message) => {
    expect(toRefusal(new Error(message))).toMatchObject({ status: 400, details: { file: { rule: 'damaged' } } });
  });
});

test('a full queue refuses a user with waiting images, but not others', async () => {
  const crowded = createImages({ sizes: { avatar: [], post: [] } });
  const bytes = new Uint8Array(await photograph(800, 600));
  const send = (user: string) => crowded.convert(user, new File([bytes], 'a', { type: 'IMAGE/JPEG' }), 'post');
  const sent = Array.from({ length: 200 }, () => send('busy'));
  const outcomes = Promise.allSettled(sent);
  await Promise.any(sent);
  expect(() => crowded.requireRoom('other')).not.toThrow();
  await expect(send('other')).resolves.toMatchObject({ width: 800 });
  const refused = (await outcomes).filter((outcome) => outcome.status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  for (const { reason } of refused) expect(reason).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
});
