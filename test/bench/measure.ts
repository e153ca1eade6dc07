import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** USER_HZ, which Linux keeps at 100 for every program to read. */
const MS_PER_TICK = 10;

/** The CPU time that a process has used so far, in ms: user and system time of all its threads. Linux only. */
export const cpuTime = (pid: number): number => statOf(pid).cpu;

/** The same for a process and its descendants, including those that have ended. */
export const cpuOfTree = (pid: number): number => sumOfTree(pid, (each) => statOf(each).cpu + statOf(each).cpuOfEnded);

/** Resident memory in MB of a process with all processes below it. */
export const memoryOfTree = (pid: number): number => sumOfTree(pid, memory);

/** The most that `memoryOfTree` was during the work, in MB, looked at ten times a second. */
export async function peakOfTree(pid: number, work: () => Promise<unknown>): Promise<number> {
  let peak = memoryOfTree(pid);
  const timer = setInterval(() => {
    peak = Math.max(peak, memoryOfTree(pid));
  }, 100);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return peak;
}

function sumOfTree(pid: number, measure: (pid: number) => number): number {
  const [root = pid, ...others] = treeOf(pid);
  return others.reduce((sum, each) => sum + (unlessEnded(() => measure(each)) ?? 0), measure(root));
}

/** A process may end while it is looked at. */
function unlessEnded<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

function treeOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const each of readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)) {
    const parent = unlessEnded(() => statOf(each).parent);
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), each]);
  }
  const below = (parent: number): number[] => [parent, ...(children.get(parent) ?? []).flatMap(below)];
  return below(pid);
}

function statOf(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // proc_pid_stat(5): the name before field 3 may hold anything.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [, parent = 0] = fields;
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11);
  return { parent, cpu: (utime + stime) * MS_PER_TICK, cpuOfEnded: (cutime + cstime) * MS_PER_TICK };
}

/** Resident memory of a process in MB: `now`, or the `peak` since it began or was last reset. Linux only. */
export function memory(pid: number, which: 'now' | 'peak' = 'now'): number {
  const field = { now: 'VmRSS', peak: 'VmHWM' }[which];
  // A process that has just ended has none.
  return (
    Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  );
}

/** Resets the peak: proc_pid_clear_refs(5). */
export const resetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, '5');

/** The duration of the work in milliseconds. */
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

export const percentile = (values: number[], p: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * p))] ?? Number.NaN;
