import type { Figures, Ratio } from './case.ts';
import { type Ask, type Load, load } from './load.ts';
import { cpuOfTree, median } from './measure.ts';

/** One server under load. */
export interface Contender {
  url: string;
  pid: number;
  ask(n: number): Ask;
  /** Calls per request, each counted; default 1. */
  calls?: number;
  /** Resolves once the work that the requests triggered is done. */
  settled?(): Promise<unknown>;
}

type Round = Load & { cpu: number };

export interface Extent {
  /** Warm-up rounds, so that each server runs compiled code; default 2. */
  warmUp?: number;
  rounds: number;
  /** Requests per round and server. */
  amount: number;
  /** Default `CONNECTIONS`. */
  connections?: number;
}

/**
 * Loads the servers one after the other, in rounds, so that a slow phase of the machine affects all. Each round has an order
 * of its own: what runs right after its own process finds warm caches. CPU and rate are per call.
 */
export async function inTurn<Name extends string>(
  contenders: Record<Name, Contender>,
  { warmUp = 2, rounds, amount, connections }: Extent,
): Promise<Record<Name, Round[]>> {
  const entries = Object.entries<Contender>(contenders);
  const measured = Object.fromEntries(entries.map(([name]) => [name, [] as Round[]]));
  for (let round = -warmUp; round < rounds; round++) {
    for (const [name, { url, pid, ask, calls = 1, settled }] of inRandomOrder(entries)) {
      const before = cpuOfTree(pid);
      const { perSecond, ...latency } = await load(url, ask, { amount, connections, settled });
      const cpu = (cpuOfTree(pid) - before) / amount / calls;
      if (round >= 0) measured[name]?.push({ perSecond: perSecond * calls, cpu, ...latency });
    }
  }
  return measured as Record<Name, Round[]>;
}

const inRandomOrder = <T>(list: T[]): T[] =>
  list
    .map((each) => ({ each, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ each }) => each);

/** The median of each figure. */
export const figures = (rounds: Round[]): Figures => ({
  perSecond: median(rounds.map(({ perSecond }) => perSecond)),
  p50: median(rounds.map(({ p50 }) => p50)),
  p99: median(rounds.map(({ p99 }) => p99)),
  cpu: median(rounds.map(({ cpu }) => cpu)),
});

/** The median of the ratios of `a` to `b` within a round. */
export const ratio = (of: 'cpu' | 'perSecond' | 'p50', a: Round[], b: Round[], goal?: Ratio['goal']): Ratio => ({
  value: median(a.map((round, n) => round[of] / (b[n]?.[of] ?? Number.NaN))),
  ...(goal && { goal }),
  ...(of === 'cpu' && { isStable: true }),
});
