import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import sharp, { type Sharp } from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Square } from '../../client/src/editor/square.ts';
import { MAX_IMAGE_BYTES } from '../../server/shared/image-limits.ts';
import { emptyPng, jpeg, photograph } from '../contract/uploads/corpus.ts';
import { startChromium } from '../rig/client/chromium.ts';

/** The files that `account-client/editor` makes of chosen ones, in Chromium. */

const built = join(import.meta.dirname, '../../client/dist/editor');
const SITE = 'https://editor.test';

let browser: Browser;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());

/** A page that can import the editor. */
async function editorPage(): Promise<Page> {
  const page = await browser.newPage();
  await page.route(`${SITE}/**`, async (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === '/') return route.fulfill({ contentType: 'text/html', body: '<!doctype html>' });
    await route.fulfill({ contentType: 'text/javascript', body: await readFile(join(built, pathname), 'utf8') });
  });
  await page.goto(SITE);
  return page;
}

interface Sent {
  type: string;
  name: string;
  bytes: Buffer;
}

/** What is sent for a chosen file, cropped to the square or, without one, scaled. Undefined if it cannot be opened. */
async function sent(page: Page, chosen: Buffer, type: string, square?: Square): Promise<Sent | undefined> {
  const file = (await page.evaluate(`(async () => {
    const { cropPicture, openPicture, scalePicture } = await import('/index.js');
    const bytes = Uint8Array.from(atob('${chosen.toString('base64')}'), (character) => character.charCodeAt(0));
    const chosen = new File([bytes], 'IMG.0042.HEIC', { type: '${type}' });
    const square = ${JSON.stringify(square) ?? 'undefined'};
    const picture = await openPicture(chosen);
    if (square && !picture) return;
    const file = await (square ? cropPicture(picture, square) : scalePicture(chosen));
    return { type: file.type, name: file.name, bytes: [...new Uint8Array(await file.arrayBuffer())] };
  })()`)) as { type: string; name: string; bytes: number[] } | undefined;
  return file && { ...file, bytes: Buffer.from(file.bytes) };
}

const SIDE = 32;

/** The mean difference of two images in a small size, 0 to 255. */
async function difference(one: Sharp, other: Sharp): Promise<number> {
  const small = async (image: Sharp) =>
    sharp(await image.png().toBuffer())
      .ensureAlpha()
      .resize(SIDE, SIDE, { fit: 'fill' })
      .raw()
      .toBuffer();
  const [a, b] = await Promise.all([small(one), small(other)]);
  return a.reduce((sum, value, i) => sum + Math.abs(value - (b[i] ?? 0)), 0) / a.length;
}

/** A drawing with transparency. */
const logo = (side: number) =>
  sharp(
    Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${side}" height="${side}"><circle cx="40%" cy="40%" r="40%" fill="#7c3aed"/></svg>`,
    ),
  );

/** Coloured cells that differ, as large as a photograph. */
const cells = (width: number, height: number) =>
  sharp(
    Uint8Array.from({ length: 12 * 9 * 3 }, (_, i) => Math.imul(i + 1, 0x9e3779b1) >>> 24),
    {
      raw: { width: 12, height: 9, channels: 3 },
    },
  ).resize(width, height, { kernel: 'cubic', fit: 'fill' });

const turned = () => cells(4000, 3000).withMetadata({ orientation: 6 }).jpeg().toBuffer();
const heic = async () => Buffer.concat([Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1'), Buffer.alloc(99)]);

/** `format` and `side` (the longest) of what is sent; without them the chosen file itself. */
const cases: {
  chosen: string;
  bytes(): Promise<Buffer>;
  type: string;
  square?: Square;
  format?: string;
  side?: number;
}[] = [
  {
    chosen: 'a photo of 12 megapixels, whole',
    bytes: () => photograph(4000, 3000),
    type: 'image/jpeg',
    square: { x: 500, y: 0, side: 3000 },
    format: 'jpeg',
    side: 1024,
  },
  {
    chosen: 'a turned photo, a part',
    bytes: turned,
    type: 'image/jpeg',
    square: { x: 2400, y: 3100, side: 600 },
    format: 'jpeg',
    side: 600,
  },
  {
    chosen: 'a small picture, whole',
    bytes: () => jpeg(300, 200),
    type: 'image/jpeg',
    square: { x: 50, y: 0, side: 200 },
  },
  {
    chosen: 'a small picture of few bytes, a part',
    bytes: () => cells(400, 300).jpeg({ quality: 15 }).toBuffer(),
    type: 'image/jpeg',
    square: { x: 0, y: 0, side: 290 },
    format: 'jpeg',
  },
  {
    chosen: 'a large logo, whole',
    bytes: () => logo(2000).png().toBuffer(),
    type: 'image/png',
    square: { x: 0, y: 0, side: 2000 },
    format: 'png',
    side: 1024,
  },
  {
    chosen: 'a logo of few bytes, a part',
    bytes: () => logo(500).png({ palette: true }).toBuffer(),
    type: 'image/png',
    square: { x: 0, y: 0, side: 300 },
    format: 'png',
  },
  {
    chosen: 'a drawing',
    bytes: () => cells(1200, 900).png({ compressionLevel: 0 }).toBuffer(),
    type: 'image/png',
    square: { x: 0, y: 0, side: 900 },
    format: 'jpeg',
    side: 900,
  },
  {
    chosen: 'a photo as PNG',
    bytes: async () =>
      sharp(await photograph(900, 900))
        .png()
        .toBuffer(),
    type: 'image/png',
    square: { x: 0, y: 0, side: 900 },
    format: 'jpeg',
    side: 900,
  },
  {
    chosen: 'a WebP',
    bytes: () => cells(800, 800).webp({ quality: 50 }).toBuffer(),
    type: 'image/webp',
    square: { x: 0, y: 0, side: 800 },
    format: 'jpeg',
  },
  {
    chosen: 'an AVIF',
    bytes: async () =>
      sharp(await photograph(800, 800))
        .avif()
        .toBuffer(),
    type: 'image/avif',
    square: { x: 0, y: 0, side: 800 },
    format: 'jpeg',
  },
  {
    chosen: 'a GIF with transparency',
    bytes: () => logo(200).gif().toBuffer(),
    type: 'image/gif',
    square: { x: 0, y: 0, side: 200 },
    format: 'png',
  },
  {
    chosen: 'a PNG of 30 megapixels',
    bytes: async () => emptyPng({ width: 6000, height: 5000 }),
    type: 'image/png',
    square: { x: 500, y: 0, side: 5000 },
    format: 'jpeg',
    side: 1024,
  },
  {
    chosen: 'a photo of 12 megapixels, scaled',
    bytes: () => photograph(4000, 3000, 95),
    type: 'image/jpeg',
    format: 'jpeg',
    side: 1600,
  },
  { chosen: 'a turned photo, scaled', bytes: turned, type: 'image/jpeg', format: 'jpeg', side: 1600 },
  { chosen: 'a photo that fits, scaled', bytes: () => photograph(1600, 1200), type: 'image/jpeg' },
  {
    chosen: 'a WebP that fits, scaled',
    bytes: () => cells(800, 600).webp({ quality: 50 }).toBuffer(),
    type: 'image/webp',
    format: 'jpeg',
  },
  {
    chosen: 'a large PNG of few bytes, scaled',
    bytes: () => logo(3000).png({ palette: true, colours: 2 }).toBuffer(),
    type: 'image/png',
  },
  { chosen: 'a HEIC, scaled', bytes: heic, type: 'image/heic' },
];

test.each(cases)('$chosen: as sharp as it can be, and never larger than chosen', async (row) => {
  const { bytes, type, square, format, side } = row;
  const page = await editorPage();
  const chosen = await bytes();
  const file = await sent(page, chosen, type, square);
  await page.close();
  if (!file) throw new Error('it could not be opened');
  expect(file.bytes.length).toBeLessThanOrEqual(Math.min(chosen.length, MAX_IMAGE_BYTES));
  if (!format) return expect([file.bytes.equals(chosen), file.type, file.name]).toEqual([true, type, 'IMG.0042.HEIC']);
  const { width, height, format: made } = await sharp(file.bytes).metadata();
  expect([made, file.type, file.name]).toEqual([
    format,
    `image/${format}`,
    `IMG.0042.${format === 'png' ? 'png' : 'jpg'}`,
  ]);
  if (side) expect(Math.max(width, height)).toBe(side);
  const upright = sharp(await sharp(chosen).autoOrient().png().toBuffer());
  const part = square
    ? upright.extract({ left: square.x, top: square.y, width: square.side, height: square.side })
    : upright;
  expect(await difference(sharp(file.bytes), part)).toBeLessThan(6);
});

test('a picture is not opened if it cannot be decoded, or if the browser alters what is read from a canvas', async () => {
  const page = await editorPage();
  const square = { x: 0, y: 0, side: 200 };
  expect(await sent(page, await heic(), 'image/heic', square)).toBeUndefined();
  expect(await sent(page, await jpeg(200, 200), 'image/jpeg', square)).toBeDefined();
  await page.evaluate(`CanvasRenderingContext2D.prototype.getImageData = (x, y, width, height) =>
    ({ data: crypto.getRandomValues(new Uint8ClampedArray(4 * width * height)) })`);
  expect(await sent(page, await jpeg(200, 200), 'image/jpeg', square)).toBeUndefined();
});
