import { beforeAll, expect, test, vi } from 'vitest';

// Loaded anew: which decoders are blocked is a state of the process, which another file may have changed.
vi.resetModules();
const { loadSharp, loadSharpForStored } = await import('../../../server/uploads/images/sharp.ts');

type Format = 'jpeg' | 'png' | 'webp' | 'gif' | 'tiff' | 'svg';

const formats: Format[] = ['jpeg', 'png', 'webp', 'gif', 'tiff', 'svg'];
const pictures = new Map<Format, Buffer>();

beforeAll(async () => {
  const sharp = await loadSharp();
  const gray = sharp({ create: { width: 8, height: 8, channels: 3, background: 'gray' } });
  for (const format of formats)
    pictures.set(
      format,
      format === 'svg'
        ? Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>')
        : await gray.clone().toFormat(format).toBuffer(),
    );
});

/** The formats that are decoded. Content types and signatures, which refuse the others first, are not asked. */
async function decoded(load: typeof loadSharp): Promise<Format[]> {
  const sharp = await load();
  const outcomes = await Promise.allSettled(formats.map((format) => sharp(pictures.get(format)).raw().toBuffer()));
  return formats.filter((_, n) => outcomes[n]?.status === 'fulfilled');
}

test('only the decoders of JPEG and PNG read uploads; stored pictures are also WebP', async () => {
  expect(await decoded(loadSharp)).toEqual(['jpeg', 'png']);
  expect(await decoded(loadSharpForStored)).toEqual(['jpeg', 'png', 'webp']);
});
