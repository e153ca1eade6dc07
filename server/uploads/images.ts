import { availableParallelism } from 'node:os';
import { ServiceError } from '../errors.ts';
import { imageTooLarge, imageTypes, MAX_IMAGE_BYTES } from '../image-limits.ts';
import { matchesSignature, START_BYTES } from '../media-types.ts';
import { gauges, observe } from '../telemetry/metrics.ts';
import type { ImagePurpose, WebpImage } from './conversion.ts';
import { createConverter } from './converter.ts';
import { createFairQueue } from './fair-queue.ts';
import { refusedImage } from './image-cost.ts';

/** interface.md, POST /api/upload/image: these may be declared, yet only `imageTypes` are converted. */
const declarableTypes = new Set(['image/jpeg', 'image/png', 'image/webp', 'image/gif']);
/** Some seconds of work: past it a client gets 503 with Retry-After rather than a longer wait. */
const QUEUE_PER_CORE = 16;

export interface SentImage {
  /** The media type that the sender declared. */
  type: string;
  size: number;
  stream(): AsyncIterable<Uint8Array>;
}

/**
 * Conversions, as many at once as `cores`, in a bounded queue that is fair between users: when it is full,
 * SERVICE_UNAVAILABLE.
 */
export function createImages({ cores = availableParallelism() } = {}) {
  const queue = createFairQueue(cores);
  const oneByOne = createFairQueue(1);
  const converter = createConverter({ cores });

  const waiting = (user?: string) => queue.waiting(user) + oneByOne.waiting(user);
  gauges(() => ({ account_image_queue_waiting: waiting() }));

  /** Half of the queue is for users with nothing waiting, so that one user cannot fill it. */
  const requireRoom = (userId: string) => {
    if (waiting() < cores * QUEUE_PER_CORE * (waiting(userId) === 0 ? 2 : 1)) return;
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
      const chunks = await Array.fromAsync(image.stream());
      const start = Buffer.concat(chunks, Math.min(image.size, START_BYTES));
      const type = imageTypes.find((known) => matchesSignature(known, start));
      if (!type) throw refusedImage('The file does not begin like a JPEG or PNG image', 'signature');
      const opened = await converter.open(chunks, type);
      try {
        requireRoom(userId);
        const queued = performance.now();
        const convert = () => {
          observe('account_image_wait_seconds', {}, (performance.now() - queued) / 1000);
          return opened.convert(purpose);
        };
        const work = () => queue.run(userId, convert);
        return await (opened.isHeavy ? oneByOne.run(userId, work) : work());
      } finally {
        opened.close();
      }
    },
  };
}

export type Images = ReturnType<typeof createImages>;
