import { setTimeout as pause } from 'node:timers/promises';
import { percentile } from './measure.ts';

/**
 * Starts `perSecond` requests a second, evenly spread, for `seconds`, however many are unanswered. Latencies in ms count
 * from the scheduled start, so that a server that delays requests is charged with the delay.
 */
export async function openLoop(
  request: (n: number) => Promise<unknown>,
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<{ perSecond: number; p50: number; p99: number }> {
  const times: number[] = [];
  const answers: Promise<unknown>[] = [];
  const started = performance.now();
  for (let n = 0; n < perSecond * seconds; n++) {
    const due = started + (n * 1000) / perSecond;
    const early = due - performance.now();
    if (early > 0) await pause(early);
    answers.push(request(n).then(() => times.push(performance.now() - due)));
  }
  await Promise.all(answers);
  return { perSecond, p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}
