import { availableParallelism } from 'node:os';
import type { Scan } from '../../../entities/index.ts';
import type { ImageSizes } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import { createFairQueue } from '../../lib/fair-queue.ts';
import { matchesSignature, START_BYTES } from '../../lib/media-types.ts';
import { type ImagePurpose, imageTooLarge, imageTypes, MAX_IMAGE_BYTES } from '../../shared/image-limits.ts';
import { gauges, observe } from '../../telemetry/metrics.ts';
import type { ConvertedImage } from './conversion.ts';
import { createConverter } from './converter.ts';
import { refusedImage } from './image-cost.ts';

/** interface.md, POST /api/upload/image: these may be declared, but only `imageTypes` are converted. */
const declarableTypes = new Set(['image/jpeg', 'image/png', 'image/webp', 'image/gif']);
/** Some seconds of work: beyond it a client gets 503 with Retry-After instead of a longer wait. */
const QUEUE_PER_CORE = 16;

export interface SentImage {
  /** The media type that the client declared. */
  type: string;
  size: number;
  stream(): AsyncIterable<Uint8Array>;
}

/**
 * Converts up to `cores` images concurrently, with a bounded queue that is fair between users. Rejects with
 * SERVICE_UNAVAILABLE if it is full.
 */
export function createImages({
  cores = availableParallelism(),
  sizes,
  requireClean = async () => null,
}: {
  cores?: number;
  /** The widths of smaller pictures. */
  sizes: ImageSizes;
  /** Rejects if a scanner found something in the sent bytes, or cannot look at them now. Null without a scanner. */
  requireClean?: ((pieces: Uint8Array[], size: number) => Promise<Scan | null>) | undefined;
}) {
  const queue = createFairQueue(cores);
  const oneByOne = createFairQueue(1);
  const converter = createConverter({ cores });

  const waiting = (user?: string) => queue.waiting(user) + oneByOne.waiting(user);
  gauges(() => ({ account_image_queue_waiting: waiting() }));

  /** Half of the queue is reserved for users with nothing waiting, so that one user cannot fill it. */
  const requireRoom = (userId: string) => {
    if (waiting() < cores * QUEUE_PER_CORE * (waiting(userId) === 0 ? 2 : 1)) return;
    throw new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('the image queue is full'), retryAfter: 5 });
  };

  return {
    /** For the check before the user has sent any bytes. */
    requireRoom,

    /** True if no image is converted or waits. */
    isIdle: () => queue.isIdle() && oneByOne.isIdle(),

    /**
     * Rejects with VALIDATION_FAILED a file that fails the check of type, size, signature or cost, or that cannot be
     * decoded; with SERVICE_UNAVAILABLE if the machine lacks time or memory now.
     */
    async convert(
      userId: string,
      image: SentImage,
      purpose: ImagePurpose,
    ): Promise<ConvertedImage & { scan: Scan | null }> {
      if (!declarableTypes.has(image.type.toLowerCase())) {
        throw refusedImage('type', 'Only JPEG, PNG, WebP and GIF images are allowed');
      }
      if (image.size > MAX_IMAGE_BYTES) throw refusedImage('too_large', imageTooLarge);
      const chunks = await Array.fromAsync(image.stream());
      const start = Buffer.concat(chunks, Math.min(image.size, START_BYTES));
      const type = imageTypes.find((known) => matchesSignature(known, start));
      if (!type) throw refusedImage('signature', 'The file does not have the signature of a JPEG or PNG image');
      const scan = await requireClean(chunks, image.size);
      const opened = await converter.open(chunks, type);
      try {
        requireRoom(userId);
        const queued = performance.now();
        const convert = () => {
          observe('account_image_wait_seconds', {}, (performance.now() - queued) / 1000);
          return opened.convert(purpose, sizes[purpose]);
        };
        const work = () => queue.run(userId, convert);
        return { ...(await (opened.isHeavy ? oneByOne.run(userId, work) : work())), scan };
      } finally {
        opened.close();
      }
    },
  };
}

export type Images = ReturnType<typeof createImages>;
