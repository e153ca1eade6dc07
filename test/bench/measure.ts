import { readFileSync, writeFileSync } from 'node:fs';

/** USER_HZ, which Linux keeps at 100 for every program to read. */
const MS_PER_TICK = 10;

/** The CPU time that a process has used so far, in ms: user and system time of all its threads. Linux only. */
export function cpuTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // proc_pid_stat(5): utime and stime are fields 14 and 15; the name before field 3 may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

/** Resident memory of a process in MB: `now`, or the `peak` since it began or was last reset. Linux only. */
export function memory(pid: number, which: 'now' | 'peak' = 'now'): number {
  const field = { now: 'VmRSS', peak: 'VmHWM' }[which];
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** From now on the peak counts anew; proc_pid_clear_refs(5). */
export const resetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, '5');

/** How many milliseconds the work takes. */
export async function duration(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low = Number.NaN, high = Number.NaN] = [sorted.at(Math.ceil(sorted.length / 2) - 1), sorted.at(middle)];
  return (low + high) / 2;
}

export interface Comparison {
  ours: number;
  baseline: number;
  ratio: number;
}

/**
 * Measures both in turn, A B A B …, so that a machine which is slow for a while is slow for both. Medians of the single
 * measurements; the ratio is the median of the ratios within a pair.
 */
export async function compare(
  rounds: number,
  measure: { ours: () => Promise<number>; baseline: () => Promise<number> },
): Promise<Comparison> {
  const pairs: { ours: number; baseline: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const ours = await measure.ours();
    pairs.push({ ours, baseline: await measure.baseline() });
  }
  return {
    ours: median(pairs.map(({ ours }) => ours)),
    baseline: median(pairs.map(({ baseline }) => baseline)),
    ratio: median(pairs.map(({ ours, baseline }) => ours / baseline)),
  };
}
