import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import sharp from 'sharp';
import { createImages, type SentImage } from '../../../server/uploads/images/images.ts';
import { photograph, png } from '../../contract/uploads/corpus.ts';
import type { Batch } from '../baselines/sharp.ts';
import type { Case, Result } from '../case.ts';
import { imageForm } from '../image-form.ts';
import { cpuOfTree, duration, median } from '../measure.ts';
import { addPeople } from '../people.ts';
import { logIn } from '../servers.ts';

interface Conversion {
  name: string;
  /** Images per second. */
  ours: number;
  bare: number;
  /** Ours divided by bare sharp, the median of the rounds. */
  ratio: number;
  /** The goal of `ratio`. */
  atLeast: number;
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
    ['JPEG, 12 megapixels', await photograph(4000, 3000), 'image/jpeg', 16, 0.9],
    ['JPEG, 1 megapixel', await photograph(1200, 900), 'image/jpeg', 16, 0.9],
    [
      'PNG, 2 megapixels',
      await photograph(1600, 1200).then((image) => sharp(image).png().toBuffer()),
      'image/png',
      16,
      0.9,
    ],
    // The queue and the checks cost as much as the picture.
    ['PNG, icon', await png(64, 64), 'image/png', 32, 0.7],
  ] as const;
  const results: Conversion[] = [];
  for (const [name, bytes, type, amount, atLeast] of samples) {
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
      atLeast,
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
    return ratios.map(({ name, ours, bare, atLeast, ratio }) => ({
      what: `image to WebP: ${name}`,
      ours: { perSecond: ours },
      others: { 'bare sharp': { perSecond: bare } },
      toLimit: { value: ratio, goal: { atLeast } },
    }));
  },
};

/** The cost of the smaller pictures: whole uploads with the default IMAGE_SIZES, and with none. */
export const variants: Case = {
  name: 'variants',
  async run({ parts, quick }) {
    const { s3 } = await parts.startSinks();
    const uploaderTo = async (env: Record<string, string>) => {
      const limits = {
        LIMIT_UPLOAD: '1000000/3600',
        LIMIT_UPLOAD_CHECK: '1000000/3600',
        UPLOAD_QUOTA: String(2 ** 40),
      };
      const { service, database } = await parts.startProduction({ ...s3.env, ...limits, ...env });
      await addPeople(database, 1);
      const person = await logIn(service.url, database, 0);
      const { pid } = service;
      if (pid === undefined) throw new Error('the service does not run');
      /** CPU of one upload, in ms. */
      return async (upload: Awaited<ReturnType<typeof imageForm>>, amount: number) => {
        const before = cpuOfTree(pid);
        for (let n = 0; n < amount; n++) await upload(service.url, person);
        return (cpuOfTree(pid) - before) / amount;
      };
    };
    const [withThem, without] = [await uploaderTo({}), await uploaderTo({ IMAGE_SIZES: 'off' })];
    const results: Result[] = [];
    for (const [width, height] of [
      [1200, 900],
      [2400, 1800],
      [4000, 3000],
    ] as const) {
      const upload = await imageForm(await photograph(width, height, 90));
      const measured: [ours: number, bare: number][] = [];
      for (let round = -1; round < (quick ? 3 : 9); round++) {
        const pair: [number, number] = [await withThem(upload, 5), await without(upload, 5)];
        if (round >= 0) measured.push(pair);
      }
      results.push({
        what: `POST /api/upload/image with its variants: ${(width * height) / 1e6} megapixels`,
        ours: { cpu: median(measured.map(([ours]) => ours)) },
        others: { 'IMAGE_SIZES=off': { cpu: median(measured.map(([, bare]) => bare)) } },
        toLimit: { value: median(measured.map(([ours, bare]) => ours / bare)), goal: { atMost: 1.5 } },
      });
    }
    return results;
  },
};
