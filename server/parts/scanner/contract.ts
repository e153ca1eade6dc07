import type { Readable } from 'node:stream';

/** A file to be looked at; its bytes are read once, in pieces. */
export interface SentFile {
  size: number;
  bytes: Readable;
}

/** `unknown`: the scanner answered that it did not look at the file, for example because it is too large. */
export type Verdict =
  | { result: 'clean' }
  | { result: 'infected' /** The scanner's name of it. */; finding: string }
  | { result: 'unknown' /** What the scanner said. */; answer: string };

export interface Scanner {
  /** Reads the bytes to their end, or destroys them. Rejects if the scanner does not answer within this time. */
  scan(file: SentFile, withinMs: number): Promise<Verdict>;
  /** Rejects unless the scanner answers at all. */
  ping(): Promise<void>;
  /** False for a scanner that is only busy. */
  isAway(): Promise<boolean>;
  /** False if the scanner is known to refuse files of this size. */
  takes(size: number): Promise<boolean>;
}

export const rejects = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => false,
    () => true,
  );

/** Concurrent callers share one call. */
export function shared<T>(call: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= call().finally(() => {
      running = undefined;
    });
    return running;
  };
}

const MAX_FINDING = 100;

/** The scanner's name of what it found, as it is stored and shown: printable ASCII. */
export const findingIn = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, MAX_FINDING) || 'unnamed';
