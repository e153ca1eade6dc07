import type { Parts } from './parts.ts';
import type { Servers } from './servers.ts';

/** One server in one workload: medians of the rounds. */
export interface Figures {
  perSecond?: number;
  /** Latencies in ms. */
  p50?: number;
  p99?: number;
  /** CPU time of the server's processes per call, in ms. */
  cpu?: number;
  /** A value of another kind, with its unit. */
  other?: string;
}

export interface Ratio {
  value: number;
  unit?: 'ms' | 'MB' | 'kB';
  goal?: { atMost: number } | { atLeast: number };
  /** A ratio that is stable between runs: it is compared with the committed one. */
  isStable?: true;
}

/** One line of the report, and the lines it is compared with. */
export interface Result {
  /** The same in each run: ratios are compared by it. */
  what: string;
  ours: Figures;
  others?: Record<string, Figures>;
  /** Our value divided by the limit: the hand-written server, or what the machine can do. */
  toLimit?: Ratio;
  /** The peer's CPU divided by ours, or our rate or latency divided by the peer's. */
  toPeer?: Ratio;
}

export interface Setting {
  parts: Parts;
  /** Shared by all cases, started at first use. */
  servers(): Promise<Servers>;
  /** Fewer rounds, requests and users. */
  quick: boolean;
}

/** A measurement against others in the same run. */
export interface Case {
  /** The name on the command line: `npm run bench -- profile`. */
  name: string;
  /** Skipped in a quick run of all cases. */
  isLong?: true;
  /** Runs only if it is named. */
  isApart?: true;
  run(setting: Setting): Promise<Result[]>;
}
