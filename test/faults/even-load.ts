import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { call as ask } from '../bench/client.ts';
import { percentile } from '../bench/measure.ts';

const SLOW_MS = 500;

interface Call {
  /** The planned start and the answer, in ms of performance.now(). */
  start: number;
  end: number;
}

interface EvenLoad {
  url: string;
  /** Of the users who send the calls. */
  sessions: readonly string[];
  perSecond: number;
}

/** Reads and changes at an even rate, by several users, however many are unanswered. */
export function startEvenLoad({ url, sessions, perSecond }: EvenLoad) {
  const calls: Call[] = [];
  const failures: string[] = [];
  let isOver = false;
  const send = (n: number) => {
    const headers = { Cookie: `auth_session=${sessions[n % sessions.length]}` };
    if (n % 10 === 3) return ask(`${url}/api/users?limit=5`);
    if (n % 10 === 7) return ask(`${url}/api/profile`, { method: 'PUT', headers, body: { bio: `${n}` } });
    return ask(`${url}/api/profile`, { headers });
  };
  const run = async () => {
    // An instance compiles and connects for its first calls.
    for (let n = 0; n < 50; n++) await Promise.all(Array.from({ length: sessions.length }, (_, i) => send(10 * n + i)));
    const began = performance.now();
    const answers: Promise<unknown>[] = [];
    for (let n = 0; !isOver; n++) {
      const start = began + (n * 1000) / perSecond;
      const early = start - performance.now();
      // A late loop reads answers too.
      await (early > 0 ? pause(early) : turn());
      const answer = send(n)
        .catch((error) => failures.push(`${Math.round(start - began)} ms: ${error}`))
        .then(() => calls.push({ start, end: performance.now() }));
      answers.push(answer);
    }
    await Promise.all(answers);
  };
  const end = run();
  return {
    calls,
    failures,
    stop: () => {
      isOver = true;
      return end;
    },
  };
}

/** What the calls that were planned in a period saw. */
export function figuresOf(calls: readonly Call[], from: number, to: number) {
  const within = calls.filter(({ start }) => start >= from && start < to);
  const times = within.map(({ start, end }) => end - start);
  const ends = within.map(({ end }) => end).sort((a, b) => a - b);
  const gaps = ends.map((end, i) => end - (ends[i - 1] ?? end));
  return {
    calls: times.length,
    perSecond: Math.round((1000 * times.length) / (to - from)),
    p50: Math.round(percentile(times, 0.5)),
    p99: Math.round(percentile(times, 0.99)),
    longest: Math.round(Math.max(...times)),
    slow: times.filter((time) => time > SLOW_MS).length,
    gap: Math.round(Math.max(...gaps)),
  };
}
