import { unavailable } from '../errors.ts';
import { lazy } from '../lazy.ts';

/** sharp, set up for bytes from anybody. Loaded with the first image, by the conversion process. */
export const loadSharp = lazy(async () => {
  const { default: sharp } = await import('sharp').catch((error: unknown) => {
    // An installation without the library for this machine: no image is at fault.
    throw unavailable(error);
  });
  // One thread an image: as many images as cores keep them all busy, and no image makes the others wait.
  sharp.concurrency(1);
  sharp.cache(false);
  // Of all decoders in the library only these two ever read uploaded bytes.
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: ['VipsForeignLoadJpeg', 'VipsForeignLoadPng'] });
  return sharp;
});
