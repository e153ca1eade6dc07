/*
 * The cost check reads headers only, so its result does not depend on the load of the machine and costs nothing.
 * Processing elements (ICC.1:2010 section 9.2.17) are refused: 600 bytes of PNG hold 30,000, each processed for each
 * other, which takes 20 seconds and cannot be interrupted. All other kinds of profile have a few steps. JPEG with
 * arithmetic coding is refused: a scan of 70 bytes makes the decoder process every coefficient, while each step of
 * Huffman coding takes at least a bit. No browser shows such an image.
 */

import { invalidField } from '../../errors.ts';
import { type ImageType, MAX_MEGAPIXELS, MAX_PIXELS } from '../../shared/image-limits.ts';
import { loadSharp } from './sharp.ts';

/** The maximum side of a WebP image. One row of MAX_PIXELS takes a hundred times as long as a square of as many. */
const MAX_SIDE = 16_383;
/** Memory for one image that must be decoded as a whole. */
const WHOLE_BYTES = 100_000_000;
/**
 * Encoders write about ten. The decoder processes all pixels for each scan, even for one of 40 bytes that changes none.
 */
const MAX_SCANS = 128;

const bytesPerSample: Record<string, number> = { uchar: 1, ushort: 2 };

export interface Affordable {
  /** The bytes for the decoder. */
  bytes: Buffer;
  /** True if it needs so much memory that it is converted alone. */
  isHeavy: boolean;
}

/**
 * Rejects with VALIDATION_FAILED an image too costly to convert (over two seconds of CPU, or too much memory). Takes
 * over the memory of `image`.
 */
export async function requireAffordable(image: Buffer, type: ImageType): Promise<Affordable> {
  const isJpeg = type === 'image/jpeg';
  const bytes = isJpeg ? image : keepPixelChunks(image);
  if (isJpeg && (isArithmetic(bytes) || scansOf(bytes) > MAX_SCANS)) throw tooCostly();
  const sharp = await loadSharp();
  const header = await sharp(bytes, { limitInputPixels: false }).metadata();
  const { width, height, channels, depth, isProgressive, icc } = header;
  if (icc && hasProgram(icc)) throw tooCostly();
  if (width * height > MAX_PIXELS) {
    throw refusedImage('too_many_pixels', `The image has more than ${MAX_MEGAPIXELS} million pixels`);
  }
  if (Math.max(width, height) > MAX_SIDE) {
    throw refusedImage('too_many_pixels', `A side of the image has more than ${MAX_SIDE} pixels`);
  }
  // A progressive or interlaced image is in memory as a whole, a JPEG as 2 bytes per coefficient; others are converted
  // line by line.
  const sampleBytes = isJpeg ? 2 : (bytesPerSample[depth] ?? 4);
  const isHeavy = isProgressive === true && width * height * channels * sampleBytes > WHOLE_BYTES;
  if (isHeavy && !isJpeg) throw tooCostly();
  return { bytes, isHeavy };
}

/**
 * True if a colour profile has processing elements (D2B0 to D2B3). `icc` has a header of 128 bytes, the number of tags,
 * then 12 bytes per tag.
 */
function hasProgram(icc: Buffer): boolean {
  const tags = icc.subarray(132, 132 + 12 * (icc.length >= 132 ? icc.readUInt32BE(128) : 0));
  for (let at = 0; at < tags.length; at += 12) if (tags.toString('latin1', at, at + 3) === 'D2B') return true;
  return false;
}

/** The frames of ITU-T T.81 table B.1 with arithmetic coding. */
const arithmeticFrames = new Set([0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf]);
/** All frames: C0 to CF without the tables (C4, CC) and the extension (C8). */
const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
/** Markers without a length: TEM, RST0 to RST7, SOI, EOI. */
const standsAlone = (marker: number) => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd9);

/** True if the first frame uses arithmetic coding. Searches for markers as the decoder does. */
function isArithmetic(jpeg: Buffer): boolean {
  for (let at = 2; at < jpeg.length; ) {
    while (at < jpeg.length && jpeg[at] !== 0xff) at++;
    while (jpeg[at] === 0xff) at++;
    const marker = jpeg[at++] ?? 0;
    if (isFrame(marker)) return arithmeticFrames.has(marker);
    if (marker === 0 || standsAlone(marker)) continue;
    if (at + 2 > jpeg.length) return false;
    at += jpeg.readUInt16BE(at);
  }
  return false;
}

/**
 * Counts every SOS marker (ITU-T T.81), even in a preview or after the image: never too few. A loop, because `indexOf`
 * is slow on megabytes of FF.
 */
function scansOf(jpeg: Buffer): number {
  let count = 0;
  for (let at = 1; at < jpeg.length; at++) if (jpeg[at] === 0xda && jpeg[at - 1] === 0xff) count++;
  return count;
}

/** W3C PNG section 4.7: the chunks that define the pixels. */
const [header = 0, pixels = 0, ...others] = ['IHDR', 'IDAT', 'IEND', 'PLTE', 'tRNS', 'iCCP', 'eXIf'].map((type) =>
  Buffer.from(type).readUInt32BE(),
);

/**
 * Removes all other chunks from the PNG in place, above all compressed texts: libpng unpacks 8 MB from 8 kB for each
 * and keeps them. The decoder refuses a truncated or malformed PNG.
 */
function keepPixelChunks(png: Buffer): Buffer {
  const once = new Set([header, ...others]);
  let length = 8;
  for (let start = 8, end = 8; start + 12 <= png.length; start = end) {
    const type = png.readUInt32BE(start + 4);
    end = Math.min(start + 12 + png.readUInt32BE(start), png.length);
    if (type !== pixels && !once.delete(type)) continue;
    if (length < start) png.copyWithin(length, start, end);
    length += end - start;
  }
  return png.subarray(0, length);
}

export const refusedImage = (rule: string, message: string, cause?: unknown) =>
  invalidField('file', rule, message, { message, cause });

const tooCostly = () => refusedImage('too_costly', 'The image takes too long to convert. Save it with other settings');
