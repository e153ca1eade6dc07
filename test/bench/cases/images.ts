import { availableParallelism } from 'node:os';
import pLimit from 'p-limit';
import sharp from 'sharp';
import { EFFORT } from '../../../server/uploads/conversion.ts';
import { createImages } from '../../../server/uploads/images.ts';
import { photograph, png } from '../../uploads/corpus.ts';
import type { Case } from '../case.ts';
import { duration, median } from '../measure.ts';

interface Conversion {
  name: string;
  /** Images a second. */
  ours: number;
  bare: number;
  /** Of ours to bare, the median of the rounds. */
  ratio: number;
}

const BATCH = 8;

/** Conversion as an upload meets it (checks, header, queue), against sharp alone with the same settings and as many at once. */
async function conversions(rounds: number): Promise<Conversion[]> {
  const images = createImages();
  const samples = [
    ['JPEG, 12 megapixels', await photograph(4000, 3000), 'image/jpeg'],
    ['JPEG, 1 megapixel', await photograph(1200, 900), 'image/jpeg'],
    ['PNG, 2 megapixels', await photograph(1600, 1200).then((image) => sharp(image).png().toBuffer()), 'image/png'],
    ['PNG, icon', await png(64, 64), 'image/png'],
  ] as const;
  const results: Conversion[] = [];
  for (const [name, bytes, type] of samples) {
    const file = new File([new Uint8Array(bytes)], 'a', { type });
    const batch = (convert: () => Promise<unknown>) => () => Promise.all(Array.from({ length: BATCH }, convert));
    const ours = batch(() => images.convert('user', file, 'post'));
    const limit = pLimit(availableParallelism());
    const bare = batch(() =>
      limit(() =>
        sharp(bytes, { limitInputPixels: 24e6, failOn: 'error', pages: 1 })
          .autoOrient()
          .resize({ width: 1600, height: 1600, fit: 'inside', withoutEnlargement: true })
          .toColourspace('srgb')
          .webp({ effort: EFFORT })
          .toBuffer(),
      ),
    );
    await Promise.all([ours(), bare()]);
    const times: [ours: number[], bare: number[]] = [[], []];
    // In turns, so that whatever else the machine does hits both.
    for (let round = 0; round < rounds; round++) {
      times[0].push(await duration(ours));
      times[1].push(await duration(bare));
    }
    const [a, b] = times.map((each) => (BATCH / median(each)) * 1000) as [number, number];
    results.push({
      name,
      ours: a,
      bare: b,
      ratio: median(times[1].map((ms, round) => ms / (times[0][round] ?? Number.NaN))),
    });
  }
  return results;
}

/** Conversion against bare sharp. */
export const images: Case = {
  name: 'images',
  async run({ quick }) {
    const ratios = await conversions(quick ? 2 : 7);
    return ratios.map(({ name, ours, bare, ratio }) => ({
      what: `image to WebP: ${name}`,
      ours: { perSecond: ours },
      others: { 'bare sharp': { perSecond: bare } },
      toLimit: { value: ratio, goal: { atLeast: 0.95 } },
    }));
  },
};
