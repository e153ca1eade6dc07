import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import sharp from 'sharp';
import { createImages, type SentImage } from '../../../server/uploads/images/images.ts';
import { photograph, png } from '../../contract/uploads/corpus.ts';
import type { Batch } from '../baselines/sharp.ts';
import type { Case } from '../case.ts';
import { duration, median } from '../measure.ts';

interface Conversion {
  name: string;
  /** Images per second. */
  ours: number;
  bare: number;
  /** Ours divided by bare sharp, the median of the rounds. */
  ratio: number;
}

/** The sizes of the pieces that a socket delivers. */
const PIECE_BYTES = 65_536;

const asReceived = (bytes: Buffer, type: string): SentImage => ({
  type,
  size: bytes.length,
  async *stream() {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  },
});

/** The conversion of an upload (checks, header, queue), compared with sharp alone. */
async function conversions(rounds: number): Promise<Conversion[]> {
  const images = createImages({ sizes: { avatar: [], post: [] } });
  const bareSharp = startBareSharp();
  const samples = [
    ['JPEG, 12 megapixels', await photograph(4000, 3000), 'image/jpeg', 16],
    ['JPEG, 1 megapixel', await photograph(1200, 900), 'image/jpeg', 16],
    ['PNG, 2 megapixels', await photograph(1600, 1200).then((image) => sharp(image).png().toBuffer()), 'image/png', 16],
    ['PNG, icon', await png(64, 64), 'image/png', 32],
  ] as const;
  const results: Conversion[] = [];
  for (const [name, bytes, type, amount] of samples) {
    const image = asReceived(bytes, type);
    const ours = () =>
      duration(() => Promise.all(Array.from({ length: amount }, () => images.convert('user', image, 'post'))));
    const bare = () => bareSharp.convert({ bytes, amount });
    await ours();
    await bare();
    const times: [ours: number[], bare: number[]] = [[], []];
    // Alternating, so that other work on the machine affects both.
    for (let round = 0; round < rounds; round++) {
      times[0].push(await ours());
      times[1].push(await bare());
    }
    const [a, b] = times.map((each) => (amount / median(each)) * 1000) as [number, number];
    results.push({
      name,
      ours: a,
      bare: b,
      ratio: median(times[1].map((ms, round) => ms / (times[0][round] ?? Number.NaN))),
    });
  }
  bareSharp.stop();
  return results;
}

function startBareSharp() {
  const child = fork(join(import.meta.dirname, '../baselines/sharp.ts'), { serialization: 'advanced' });
  return {
    /** Milliseconds. */
    async convert(batch: Batch): Promise<number> {
      child.send(batch);
      const [ms] = (await once(child, 'message')) as [number];
      return ms;
    },
    stop: () => child.disconnect(),
  };
}

/** Compares the conversion with bare sharp. */
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
