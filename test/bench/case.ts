import type { Parts } from './parts.ts';

/** One line of the report. */
export interface Result {
  what: string;
  /** With their units. */
  ours: string;
  baseline: string;
  /** Of ours to the baseline's, or the value itself where the goal is an absolute one; compared with the goal. */
  value: number;
  unit?: 's';
  goal?: { atMost: number } | { atLeast: number };
}

/** Something that is measured against a baseline in the same run. */
export interface Case {
  /** As on the command line: `npm run bench -- profile`. */
  name: string;
  run(parts: Parts): Promise<Result[]>;
}
