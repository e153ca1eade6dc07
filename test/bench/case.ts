import type { Parts } from './parts.ts';
import type { Servers } from './servers.ts';

/** Of one server in one kind of work: medians of the rounds. */
export interface Figures {
  perSecond?: number;
  /** Latencies in ms. */
  p50?: number;
  p99?: number;
  /** CPU time of the server's processes for one call, in ms. */
  cpu?: number;
  /** Where nothing of these was measured, with its unit. */
  other?: string;
}

export interface Ratio {
  value: number;
  unit?: 'ms' | 'MB';
  goal?: { atMost: number } | { atLeast: number };
  /** A ratio that differs little from run to run: it is compared with the committed one. */
  isStable?: true;
}

/** One line of the report, and those below it that it is compared with. */
export interface Result {
  /** The same in each run: ratios are compared by it. */
  what: string;
  ours: Figures;
  others?: Record<string, Figures>;
  /** Of ours to the limit, which is the hand-written server or what the machine can do. */
  toLimit?: Ratio;
  /** How many times as much of the peer's CPU, or of ours the rate. */
  toPeer?: Ratio;
}

export interface Setting {
  parts: Parts;
  /** The same for all cases, started when first asked for. */
  servers(): Promise<Servers>;
  /** Fewer rounds, requests and users. */
  quick: boolean;
}

/** Something that is measured against others in the same run. */
export interface Case {
  /** As on the command line: `npm run bench -- profile`. */
  name: string;
  /** Left out of a quick run of all cases. */
  isLong?: true;
  run(setting: Setting): Promise<Result[]>;
}
