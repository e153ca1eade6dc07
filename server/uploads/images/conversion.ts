import type { ResizeOptions, Sharp } from 'sharp';
import { rgbaToThumbHash } from 'thumbhash';
import { ServiceError } from '../../errors.ts';
import { type ImagePurpose, MAX_PIXELS, pictureSides } from '../../shared/image-limits.ts';
import { refusedImage } from './image-cost.ts';
import { loadSharp, loadSharpForStored } from './sharp.ts';

/** Wall time, ten times that of an acceptable image: beyond it the machine is at fault, not the image. */
export const MAX_SECONDS = 20;

/**
 * Of 0 to 6. Takes less than three fifths of the time of the default 4, for 3 % more bytes of photographs and 10 % of
 * screenshots. The table is in test/bench/README.md, "WebP effort".
 */
export const EFFORT = 2;
interface Encoding {
  /** Of 1 to 100; sharp's default is 80. */
  quality?: number;
  effort: number;
}

/** With EFFORT, the variants of a post would take as long as the post. test/bench/README.md, "Variants". */
const ofVariants = {
  /** As many bytes as with effort 1 and quality 80, in four fifths of the time. */
  photograph: { effort: 0, quality: 75 },
  /** Effort 0 makes drawings and screenshots half as large again. */
  other: { effort: 1 },
} satisfies Record<string, Encoding>;

/** The type in which cameras store photographs. */
const isJpeg = (bytes: Uint8Array): boolean => bytes[0] === 0xff && bytes[1] === 0xd8;

/** Sharp on dense screens (design/uploads.md). */
const sizes: Record<ImagePurpose, ResizeOptions> = {
  avatar: { width: pictureSides.avatar, height: pictureSides.avatar, fit: 'cover', position: 'centre' },
  post: { width: pictureSides.post, height: pictureSides.post, fit: 'inside', withoutEnlargement: true },
};

/** The longest side of a picture that a ThumbHash is made from. */
const HASHED_SIDE = 100;

export interface WebpImage {
  bytes: Buffer;
  width: number;
  height: number;
}

/** Smaller pictures of an image, by width, and its ThumbHash in Base64. */
interface Derived {
  variants: WebpImage[];
  placeholder: string;
}

export type ConvertedImage = WebpImage & Derived;

/** A stored picture: its size, and what was made of it. */
export type DerivedImage = Omit<ConvertedImage, 'bytes'>;

/** Pixels in memory: with `raw`, the input of sharp. */
interface Pixels {
  data: Buffer;
  raw: { width: number; height: number; channels: 1 | 2 | 3 | 4 };
}

/**
 * WebP in sRGB, upright, first frame only, without metadata, and the widths below that of the picture. The image is
 * decoded once. Rejects with sharp's own errors.
 */
export async function toWebp(
  bytes: Uint8Array,
  purpose: ImagePurpose,
  widths: readonly number[],
): Promise<ConvertedImage> {
  const sharp = await loadSharp();
  const image = sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', pages: 1 })
    .autoOrient()
    .resize(sizes[purpose])
    .toColourspace('srgb');
  const picture = await pixelsOf(image);
  const encoding = isJpeg(bytes) ? ofVariants.photograph : ofVariants.other;
  return { ...(await encode(picture, { effort: EFFORT })), ...(await derive(picture, widths, encoding)) };
}

/** What `toWebp` makes beside the picture, from a picture that it has made. */
export async function fromStored(bytes: Uint8Array, widths: readonly number[]): Promise<DerivedImage> {
  const sharp = await loadSharpForStored();
  const picture = await pixelsOf(sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', pages: 1 }));
  const { width, height } = picture.raw;
  return { width, height, ...(await derive(picture, widths, ofVariants.other)) };
}

/** Each from the next wider one: half the time of making all from the widest. */
async function derive(picture: Pixels, widths: readonly number[], encoding: Encoding): Promise<Derived> {
  const variants: WebpImage[] = [];
  let smallest = picture;
  for (const width of widths.filter((each) => each < picture.raw.width).toSorted((a, b) => b - a)) {
    smallest = await resized(smallest, { width });
    variants.unshift(await encode(smallest, encoding));
  }
  return { variants, placeholder: await thumbHash(smallest) };
}

async function pixelsOf(image: Sharp): Promise<Pixels> {
  const { data, info } = await image.timeout({ seconds: MAX_SECONDS }).raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  return { data, raw: { width, height, channels } };
}

/** The kernel takes two thirds of the time of the default, Lanczos. */
async function resized({ data, raw }: Pixels, size: ResizeOptions): Promise<Pixels> {
  const sharp = await loadSharp();
  return pixelsOf(sharp(data, { raw }).resize({ ...size, kernel: 'linear' }));
}

async function encode({ data, raw }: Pixels, encoding: Encoding): Promise<WebpImage> {
  const sharp = await loadSharp();
  const bytes = await sharp(data, { raw }).timeout({ seconds: MAX_SECONDS }).webp(encoding).toBuffer();
  return { bytes, width: raw.width, height: raw.height };
}

async function thumbHash(picture: Pixels): Promise<string> {
  const sharp = await loadSharp();
  const { data, raw } = await resized(picture, {
    width: HASHED_SIDE,
    height: HASHED_SIDE,
    fit: 'inside',
    withoutEnlargement: true,
  });
  const rgba = await sharp(data, { raw }).toColourspace('srgb').ensureAlpha().raw().toBuffer();
  return Buffer.from(rgbaToThumbHash(raw.width, raw.height, rgba)).toString('base64');
}

/** Messages of sharp, libvips and the decoders for a fault of the machine, not of the image. */
const exhausted =
  /^timeout: |out of memory|insufficient memory|cannot allocate|bad_alloc|unable to (?:alloc|create thread)/i;

/** The error for an image that could not be converted. */
export function toRefusal(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (error instanceof Error && exhausted.test(error.message)) {
    return new ServiceError('SERVICE_UNAVAILABLE', { cause: error, retryAfter: 5 });
  }
  return refusedImage('damaged', 'The image is damaged', error);
}
