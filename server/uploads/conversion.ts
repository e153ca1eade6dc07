import type { ResizeOptions } from 'sharp';
import { ServiceError } from '../errors.ts';
import { MAX_PIXELS } from '../shared/image-limits.ts';
import { refusedImage } from './image-cost.ts';
import { loadSharp } from './sharp.ts';

/** Wall time, ten times that of an acceptable image: beyond it the machine is at fault, not the image. */
export const MAX_SECONDS = 20;

/**
 * Of 0 to 6. Takes less than three fifths of the time of the default 4, for 3 % more bytes of photographs and 10 % of
 * screenshots. The table is in test/bench/README.md, "WebP effort".
 */
export const EFFORT = 2;

export type ImagePurpose = 'avatar' | 'post';

/** Sharp on dense screens (design/uploads.md). */
const sizes: Record<ImagePurpose, ResizeOptions> = {
  avatar: { width: 512, height: 512, fit: 'cover', position: 'centre' },
  post: { width: 1600, height: 1600, fit: 'inside', withoutEnlargement: true },
};

export interface WebpImage {
  bytes: Buffer;
  width: number;
  height: number;
}

/** WebP in sRGB, upright, first frame only, without metadata. Rejects with sharp's own errors. */
export async function toWebp(bytes: Uint8Array, purpose: ImagePurpose): Promise<WebpImage> {
  const sharp = await loadSharp();
  const { data, info } = await sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', pages: 1 })
    .autoOrient()
    .resize(sizes[purpose])
    .toColourspace('srgb')
    .timeout({ seconds: MAX_SECONDS })
    .webp({ effort: EFFORT })
    .toBuffer({ resolveWithObject: true });
  return { bytes: data, width: info.width, height: info.height };
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
  return refusedImage('The image is damaged', 'damaged', error);
}
