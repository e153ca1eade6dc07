import { unavailable } from '../../errors.ts';
import { lazy } from '../../lib/lazy.ts';

/** sharp, configured for untrusted input. Loaded by the conversion process with the first image. */
export const loadSharp = lazy(async () => {
  const { default: sharp } = await import('sharp').catch((error: unknown) => {
    // sharp is not installed for this machine: no image is at fault.
    throw unavailable(error);
  });
  // One thread per image: with as many images as cores all are busy, and no image makes the others wait.
  sharp.concurrency(1);
  sharp.cache(false);
  // Only these two decoders of the library ever read uploaded bytes.
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: ['VipsForeignLoadJpeg', 'VipsForeignLoadPng'] });
  return sharp;
});

/** The same for pictures that this service has stored, in a process that gets no uploads: it also reads WebP. */
export const loadSharpForStored = lazy(async () => {
  const sharp = await loadSharp();
  sharp.unblock({ operation: ['VipsForeignLoadWebp'] });
  return sharp;
});
