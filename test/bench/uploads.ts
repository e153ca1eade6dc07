import { availableParallelism } from 'node:os';
import pLimit from 'p-limit';
import sharp from 'sharp';
import { s3Storage } from '../../server/parts/object-storage/s3.ts';
import { createImages } from '../../server/uploads/images.ts';
import { photograph, png } from '../uploads/corpus.ts';
import type { Case } from './case.ts';

export interface Ratio {
  name: string;
  /** Images a second. */
  ours: number;
  bare: number;
  /** ours / bare. */
  ratio: number;
}

const ROUNDS = 7;
const BATCH = 8;

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

/** Conversion as an upload meets it (checks, header, queue), against sharp alone with the same settings and as many at once. */
export async function conversions(): Promise<Ratio[]> {
  const images = createImages();
  const samples = [
    ['JPEG, 12 megapixels', await photograph(4000, 3000), 'image/jpeg'],
    ['JPEG, 1 megapixel', await photograph(1200, 900), 'image/jpeg'],
    ['PNG, 2 megapixels', await photograph(1600, 1200).then((image) => sharp(image).png().toBuffer()), 'image/png'],
    ['PNG, icon', await png(64, 64), 'image/png'],
  ] as const;
  const results: Ratio[] = [];
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
          .webp()
          .toBuffer(),
      ),
    );
    await Promise.all([ours(), bare()]);
    const times: [ours: number[], bare: number[]] = [[], []];
    // In turns, so that whatever else the machine does hits both.
    for (let round = 0; round < ROUNDS; round++) {
      times[0].push(await secondsOf(ours));
      times[1].push(await secondsOf(bare));
    }
    const [a, b] = [BATCH / median(times[0]), BATCH / median(times[1])];
    results.push({ name, ours: a, bare: b, ratio: a / b });
  }
  return results;
}

/** Microseconds of CPU for one presigned address, no network and no database in it. */
export async function presignMicroseconds(): Promise<number> {
  const storage = s3Storage(
    {
      // Nothing listens there: signing that asked anybody would fail.
      endpoint: 'http://127.0.0.1:9',
      region: 'us-east-1',
      bucket: 'bench',
      accessKey: 'key',
      secretKey: 'secret',
      publicUrl: 'http://127.0.0.1:9/bench',
    },
    { createBucket: false },
  );
  const times = 2000;
  const run = async () => {
    for (let i = 0; i < times; i++) {
      await storage.presignPut({
        key: `uploads/${i}.png`,
        contentType: 'image/png',
        size: 1000 + i,
        expiresInSeconds: 300,
      });
    }
  };
  await run();
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  storage.close();
  return (user + system) / times;
}

/** Conversion against bare sharp; presigning against its millisecond of CPU. */
export const uploads: Case = {
  name: 'uploads',
  async run() {
    const ratios = await conversions();
    const microseconds = await presignMicroseconds();
    return [
      ...ratios.map(({ name, ours, bare, ratio }) => ({
        what: `image to WebP: ${name}`,
        ours: `${ours.toFixed(1)} images/s`,
        baseline: `${bare.toFixed(1)} images/s`,
        value: ratio,
        goal: { atLeast: 0.9 },
      })),
      {
        what: 'presigning one address (CPU)',
        ours: `${microseconds.toFixed(0)} µs`,
        baseline: '1000 µs',
        value: microseconds / 1000,
        goal: { atMost: 1 },
      },
    ];
  },
};
