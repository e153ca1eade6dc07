import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../rig/until.ts';
import type { Case, Result } from '../case.ts';
import { imageForm } from '../image-form.ts';
import { type Ask, CONNECTIONS, load } from '../load.ts';
import { memoryOfTree, peakOfTree } from '../measure.ts';
import { type Person, startServers } from '../servers.ts';

const IMAGES = 100;
const AT_ONCE = 16;
const FEW_AT_ONCE = 4;
/** The time after the last image in which memory may be returned. */
const RETURNED_WITHIN_MS = 60_000;

/** Resident memory in MB of all processes of a service: idle, after images, and over many requests. */
export const memory: Case = {
  name: 'memory',
  isLong: true,
  async run({ parts, quick }) {
    const { service, people } = await startServers(parts);
    const { pid, url } = service;
    const now = () => memoryOfTree(pid);
    await pause(5_000);
    const idle = now();

    const upload = await imageForm();
    const personOf = (n: number) => people[n % people.length] as Person;
    const uploads = async (amount: number, atOnce: number) => {
      for (let n = 0; n < amount; n += atOnce)
        await Promise.all(Array.from({ length: Math.min(atOnce, amount - n) }, (_, i) => upload(url, personOf(n + i))));
    };
    const beside = await peakOfTree(pid, () => uploads(6 * FEW_AT_ONCE, FEW_AT_ONCE));
    await uploads(IMAGES, AT_ONCE);
    const busy = now();
    let least = busy;
    const returned = () => {
      least = Math.min(least, now());
      return least <= idle + 60;
    };
    await until(returned, { every: 500, within: RETURNED_WITHIN_MS }).catch(() => undefined);

    const amount = quick ? 100_000 : 1_000_000;
    const sizes: number[] = [];
    const read = (n: number): Ask => ({
      path: '/api/profile',
      headers: { Cookie: personOf(n).cookie },
      isRight: (text) => text.startsWith('{"user":'),
    });
    const reading = await peakOfTree(pid, async () => {
      for (let tenth = 0; tenth < 10; tenth++) {
        await load(url, read, { amount: amount / 10 });
        sizes.push(now());
      }
    });
    const [early = Number.NaN, late = Number.NaN] = [sizes[1], sizes.at(-1)];
    const line = (what: string, mb: number, atMost: number): Result => ({
      what,
      ours: { other: `${mb.toFixed(0)} MB` },
      toLimit: { value: mb, unit: 'MB', goal: { atMost } },
    });
    return [
      line(`memory while ${FEW_AT_ONCE} images of 12 megapixels are converted`, beside, 450),
      line(`memory under ${CONNECTIONS} reads in flight`, reading, 250),
      {
        what: `memory after ${IMAGES} images of 12 megapixels, above idle`,
        ours: { other: `${least.toFixed(0)} MB` },
        others: {
          idle: { other: `${idle.toFixed(0)} MB` },
          'right after the last': { other: `${busy.toFixed(0)} MB` },
        },
        toLimit: { value: least - idle, unit: 'MB', goal: { atMost: 60 } },
      },
      {
        what: `memory after ${amount.toLocaleString('en')} profile reads, to that after a fifth of them`,
        ours: { other: `${late.toFixed(0)} MB` },
        others: { 'after a fifth': { other: `${early.toFixed(0)} MB` } },
        toLimit: { value: late / early, goal: { atMost: 1.1 } },
      },
    ];
  },
};
