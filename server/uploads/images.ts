import { availableParallelism } from 'node:os';
import type { ResizeOptions } from 'sharp';
import { ServiceError } from '../errors.ts';
import { imageTooLarge, imageTypes, MAX_IMAGE_BYTES, MAX_PIXELS } from '../image-limits.ts';
import { matchesSignature } from '../media-types.ts';
import { createFairQueue } from './fair-queue.ts';
import { refusedImage, requireAffordable } from './image-cost.ts';
import { loadSharp } from './sharp.ts';

/** interface.md, POST /api/upload/image: these may be declared, yet only `imageTypes` are converted. */
const declarableTypes = new Set(['image/jpeg', 'image/png', 'image/webp', 'image/gif']);
/** Of wall time, ten times what an affordable image takes: past it the machine is at fault, not the image. */
const MAX_SECONDS = 20;

const CORES = availableParallelism();
/** Some seconds of work: past it a client gets 503 with Retry-After rather than a longer wait. */
const QUEUE_PER_CORE = 16;

export type ImagePurpose = 'avatar' | 'post';

/** decisions.md, "Uploads". */
const sizes: Record<ImagePurpose, ResizeOptions> = {
  avatar: { width: 512, height: 512, fit: 'cover', position: 'centre' },
  post: { width: 1600, height: 1600, fit: 'inside', withoutEnlargement: true },
};

export interface SentImage {
  /** The media type that the sender declared. */
  type: string;
  size: number;
  bytes(): Promise<Uint8Array>;
}

export interface WebpImage {
  bytes: Buffer;
  width: number;
  height: number;
}

/** WebP in sRGB, upright, the first frame only, without metadata. Rejects with sharp's own errors. */
export async function toWebp(bytes: Uint8Array, purpose: ImagePurpose): Promise<WebpImage> {
  const sharp = await loadSharp();
  const { data, info } = await sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', pages: 1 })
    .autoOrient()
    .resize(sizes[purpose])
    .toColourspace('srgb')
    .timeout({ seconds: MAX_SECONDS })
    .webp()
    .toBuffer({ resolveWithObject: true });
  return { bytes: data, width: info.width, height: info.height };
}

/**
 * Conversions, as many at once as there are cores, in a bounded queue that is fair between users: when it is full,
 * SERVICE_UNAVAILABLE.
 */
export function createImages() {
  const queue = createFairQueue(CORES);
  const oneByOne = createFairQueue(1);

  /** Half of the queue is for users with nothing waiting, so that one user cannot fill it. */
  const requireRoom = (userId: string) => {
    const waiting = (user?: string) => queue.waiting(user) + oneByOne.waiting(user);
    if (waiting() < CORES * QUEUE_PER_CORE * (waiting(userId) === 0 ? 2 : 1)) return;
    throw new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('the image queue is full'), retryAfter: 5 });
  };

  return {
    /** For the check before the user has sent anything. */
    requireRoom,

    /**
     * Rejects with VALIDATION_FAILED a file that is not accepted as an image: by type, size, signature, cost, and by
     * decoding it; with SERVICE_UNAVAILABLE when the machine has no time or memory for it now.
     */
    async convert(userId: string, image: SentImage, purpose: ImagePurpose): Promise<WebpImage> {
      if (!declarableTypes.has(image.type.toLowerCase())) {
        throw refusedImage('Only JPEG, PNG, WebP and GIF images are allowed', 'type');
      }
      if (image.size > MAX_IMAGE_BYTES) throw refusedImage(imageTooLarge, 'too_large');
      const { buffer, byteOffset, byteLength } = await image.bytes();
      const sent = Buffer.from(buffer, byteOffset, byteLength);
      const type = imageTypes.find((known) => matchesSignature(known, sent));
      if (!type) throw refusedImage('The file does not begin like a JPEG or PNG image', 'signature');
      try {
        const { bytes, isHeavy } = await requireAffordable(sent, type);
        requireRoom(userId);
        const work = () => queue.run(userId, () => toWebp(bytes, purpose));
        return await (isHeavy ? oneByOne.run(userId, work) : work());
      } catch (error) {
        throw toRefusal(error);
      }
    },
  };
}

export type Images = ReturnType<typeof createImages>;

/** Messages of sharp, libvips and the decoders when the machine, not the image, is at fault. */
const exhausted =
  /^timeout: |out of memory|insufficient memory|cannot allocate|bad_alloc|unable to (?:alloc|create thread)/i;

/** The refusal of an image that could not be converted. */
export function toRefusal(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (error instanceof Error && exhausted.test(error.message)) {
    return new ServiceError('SERVICE_UNAVAILABLE', { cause: error, retryAfter: 5 });
  }
  return refusedImage('The image is damaged', 'damaged', error);
}
