import { availableParallelism } from 'node:os';
import pLimit from 'p-limit';
import sharp, { type ResizeOptions, type Sharp } from 'sharp';
import { ServiceError } from '../errors.ts';

/** interface.md, POST /api/upload/image. */
export const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
const allowedTypes = new Set(['image/jpeg', 'image/png', 'image/webp', 'image/gif']);
const signatures = ['ffd8ff', '89504e47'];
const MAX_PIXELS = 24_000_000;
const MAX_SECONDS = 20;
/** Of memory for one image; who needs more is converted alone. */
const HEAVY_BYTES = 100_000_000;

const CORES = availableParallelism();
/** Some seconds of work: who would wait longer is told to come back. */
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

// One thread an image: as many images as cores keep them all busy, and no image makes the others wait.
sharp.concurrency(1);
sharp.cache(false);
// Of all decoders in the library only these two ever see what a stranger sent.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: ['VipsForeignLoadJpeg', 'VipsForeignLoadPng'] });

const open = (bytes: Uint8Array): Sharp => sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', pages: 1 });

/** Whether the image may come in passes (interlaced PNG, progressive JPEG): a guess that costs nothing and misses none. */
const mayComeInPasses = (bytes: Uint8Array): boolean =>
  bytes[28] === 1 || Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes('\xff\xc2', 0, 'latin1');

/** An image that comes in passes must be in memory as a whole; others go through line by line. Looks at the header only. */
async function isHeavy(bytes: Uint8Array): Promise<boolean> {
  if (!mayComeInPasses(bytes)) return false;
  const { isProgressive, width, height, channels } = await open(bytes).metadata();
  return Boolean(isProgressive) && width * height * channels * 2 > HEAVY_BYTES;
}

/** WebP in sRGB, upright, the first frame only, without metadata. Rejects with whatever sharp says. */
export async function toWebp(bytes: Uint8Array, purpose: ImagePurpose): Promise<WebpImage> {
  const { data, info } = await open(bytes)
    .autoOrient()
    .resize(sizes[purpose])
    .toColourspace('srgb')
    .timeout({ seconds: MAX_SECONDS })
    .webp()
    .toBuffer({ resolveWithObject: true });
  return { bytes: data, width: info.width, height: info.height };
}

/** Conversions, as many at once as there are cores, in a queue that ends: past it SERVICE_UNAVAILABLE. */
export function createImages() {
  const limit = pLimit(CORES);
  const oneByOne = pLimit(1);

  const requireRoom = () => {
    if (limit.pendingCount + oneByOne.pendingCount < CORES * QUEUE_PER_CORE) return;
    throw new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('the image queue is full'), retryAfter: 5 });
  };

  return {
    /** For those who have sent nothing yet. */
    requireRoom,

    /** Rejects with VALIDATION_FAILED what is no image we take: by type, size, signature, and by decoding it. */
    async convert(image: SentImage, purpose: ImagePurpose): Promise<WebpImage> {
      if (!allowedTypes.has(image.type)) throw refused('Only JPEG, PNG, WebP and GIF images are allowed', 'type');
      if (image.size > MAX_IMAGE_BYTES) throw refused('The image is larger than 5 MB', 'too_large');
      const bytes = await image.bytes();
      const start = Buffer.from(bytes.subarray(0, 4)).toString('hex');
      if (!signatures.some((signature) => start.startsWith(signature))) {
        throw refused('The file does not begin like a JPEG or PNG image', 'signature');
      }
      requireRoom();
      const run = async () => {
        const work = () => limit(() => toWebp(bytes, purpose));
        return (await isHeavy(bytes)) ? oneByOne(work) : work();
      };
      return run().catch((error: unknown) => {
        throw isTooManyPixels(error)
          ? refused('The image has more than 24 million pixels', 'too_many_pixels')
          : refused('The image is damaged', 'damaged', error);
      });
    },
  };
}

export type Images = ReturnType<typeof createImages>;

const isTooManyPixels = (error: unknown): boolean => error instanceof Error && /pixel limit/i.test(error.message);

const refused = (message: string, rule: string, cause?: unknown) =>
  new ServiceError('VALIDATION_FAILED', { message, details: { file: { message, rule } }, cause });
