import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, constants } from 'node:os';
import { join } from 'node:path';
import type { Case, Figures, Result } from '../case.ts';
import { call } from '../client.ts';
import type { ImageLoad } from '../image-load.ts';
import { type Ask, load } from '../load.ts';
import { median, percentile } from '../measure.ts';
import { openLoop } from '../open-loop.ts';
import { nodeHttpFile, type Person } from '../servers.ts';
import { logInAs } from './passwords.ts';

const LOGINS = 8;
const IMAGES = 16;
const PER_SECOND = 200;

/**
 * One kind of work must not starve another. Load generator, databases and service share the cores, so part of each wait
 * is the machine's: the baseline is the same server under the same load without the other work.
 */
export const isolation: Case = {
  name: 'isolation',
  async run({ parts, servers, quick }) {
    const { service, people, env } = await servers();
    const seconds = quick ? 3 : 8;
    const personOf = (n: number) => people[n % people.length] as Person;
    const read = (n: number): Ask => ({
      path: '/api/profile',
      headers: { Cookie: personOf(n).cookie },
      isRight: (text) => text.startsWith('{"user":'),
    });
    const reads = (url: string) => openLoop((n) => send(url, read(n)), { perSecond: PER_SECOND, seconds });
    const most = (url: string) => load(url, read, { amount: quick ? 1000 : 3000 });
    const logIn = (url: string) => (n: number) => send(url, logInAs(people, n));

    const besideLogins = async (url: string) => {
      const alone = await reads(url);
      const { perSecond } = await most(url);
      const logins = await inFlight(LOGINS, logIn(url));
      const beside = await reads(url);
      const rate = (await most(url)).perSecond / perSecond;
      await logins.stop();
      return { alone, beside, ratio: beside.p99 / alone.p99, rate };
    };
    const besideImages = async () => {
      const images = await imagesInFlight({ url: service.url, people, atOnce: IMAGES });
      const beside = await reads(service.url);
      const logins = await oneByOne(logIn(service.url), seconds);
      await images.stop();
      return { beside, logins };
    };

    const nice = quick ? undefined : await parts.startServer(nodeHttpFile, { ...env, HASHING_NICE: '19' });
    const ours: Awaited<ReturnType<typeof besideLogins>>[] = [];
    const byHand: typeof ours = [];
    const images: Awaited<ReturnType<typeof besideImages>>[] = [];
    const busy: Latency[] = [];
    await most(service.url); // reaches its compiled code
    if (nice) await most(nice.url);
    for (let round = 0; round < (quick ? 1 : 3); round++) {
      ours.push(await besideLogins(service.url));
      if (nice) byHand.push(await besideLogins(nice.url));
      images.push(await besideImages());
      busy.push(await withBusyCores(() => reads(service.url)));
    }

    const what = `GET /api/profile at ${PER_SECOND}/s`;
    const alone = {
      alone: latencyOf(ours.map((round) => round.alone)),
      'alone, all cores kept busy at nice 19': latencyOf(busy),
    };
    const niceFigures = byHand.length > 0 && {
      'node:http by hand, hashing at nice 19, alone': latencyOf(byHand.map((round) => round.alone)),
      'node:http by hand, hashing at nice 19': latencyOf(byHand.map((round) => round.beside)),
    };
    const logins = latencyOf(images.map((round) => round.logins));
    /** To the p99 of the server by hand beside its own logins. */
    const toByHand = (rounds: Latency[]): Pick<Result, 'toPeer'> =>
      byHand.length === 0
        ? {}
        : {
            toPeer: {
              value: median(rounds.map(({ p99 }, n) => p99 / (byHand[n]?.beside.p99 ?? Number.NaN))),
              goal: { atMost: 1.3 },
            },
          };
    return [
      {
        what: `${what}, ${LOGINS} logins in flight (ratio of p99 to alone)`,
        ours: latencyOf(ours.map(({ beside }) => beside)),
        others: { ...alone, ...niceFigures },
        toLimit: { value: median(ours.map(({ ratio }) => ratio)), goal: { atMost: 2 } },
        ...toByHand(ours.map(({ beside }) => beside)),
      },
      {
        what: `${what}, ${IMAGES} images of 12 megapixels in flight (ratio of p99 to alone)`,
        ours: latencyOf(images.map(({ beside }) => beside)),
        others: alone,
        toLimit: {
          value: median(images.map(({ beside }, n) => beside.p99 / (ours[n]?.alone.p99 ?? Number.NaN))),
          goal: { atMost: 3 },
        },
        ...toByHand(images.map(({ beside }) => beside)),
      },
      {
        what: `GET /api/profile, ${LOGINS} logins in flight (ratio of the rate to alone)`,
        ours: {},
        toLimit: { value: median(ours.map(({ rate }) => rate)), goal: { atLeast: 0.5 } },
      },
      {
        what: `POST /auth/login, ${IMAGES} images of 12 megapixels in flight (p99)`,
        ours: logins,
        toLimit: { value: logins.p99, unit: 'ms', goal: { atMost: 500 } },
      },
    ];
  },
};

interface Latency {
  p50: number;
  p99: number;
}

const latencyOf = (rounds: Latency[]) =>
  ({ p50: median(rounds.map(({ p50 }) => p50)), p99: median(rounds.map(({ p99 }) => p99)) }) satisfies Figures;

/**
 * Runs the work while idle-priority processes keep all cores busy: the wait that busy cores alone add, without hashes
 * or conversions.
 */
async function withBusyCores<T>(work: () => Promise<T>): Promise<T> {
  const script = `os.setPriority(${constants.priority.PRIORITY_LOW}); console.log('busy'); for (;;);`;
  const children = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  try {
    await Promise.all(children.map(({ stdout }) => once(stdout, 'data')));
    return await work();
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}

/** A constant number of concurrent requests until it is stopped. Resolves once the first is done. */
async function inFlight(atOnce: number, work: (n: number) => Promise<unknown>) {
  const first = Promise.withResolvers<void>();
  let stopped = false;
  let begun = 0;
  const repeated = async () => {
    while (!stopped) {
      await work(begun++);
      first.resolve();
    }
  };
  const all = Promise.all(Array.from({ length: atOnce }, repeated));
  all.catch(first.reject);
  await first.promise;
  return {
    /** Rejects if one has failed. */
    async stop() {
      stopped = true;
      await all;
    },
  };
}

/** The same with picture uploads, from a separate process: their bytes would disturb the measurement here. */
async function imagesInFlight(images: ImageLoad) {
  const child = fork(join(import.meta.dirname, '../image-load.ts'), { serialization: 'advanced' });
  const ended = once(child, 'exit');
  child.send(images);
  if (!(await Promise.race([once(child, 'message'), ended.then(() => undefined)])))
    throw new Error('no picture was uploaded');
  return {
    /** Rejects if one has failed. */
    async stop() {
      if (child.connected) child.disconnect();
      const [code] = await ended;
      if (code !== 0) throw new Error(`the upload of pictures ended with ${code}`);
    },
  };
}

async function oneByOne(work: (n: number) => Promise<unknown>, seconds: number): Promise<Latency> {
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  for (let started = performance.now(); started < end; ) {
    await work(times.length);
    const now = performance.now();
    times.push(now - started);
    started = now;
  }
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

/** Sends one request beside `load`; rejects on an unexpected answer. */
async function send(url: string, { path, headers = {}, body, isRight }: Ask): Promise<void> {
  const answer = await call(url + path, { headers, body });
  if (!isRight(answer.body)) throw new Error(`${url}${path} answered ${answer.body}`);
}
