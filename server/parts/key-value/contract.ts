/** `points` uses in so many seconds, counted under a name of its own. */
interface Allowance {
  name: string;
  points: number;
  seconds: number;
}

/** One use, counted: `allowed` is false once the allowance is used up. */
export interface Consumption {
  allowed: boolean;
  /** Milliseconds until the window ends. */
  msBeforeNext: number;
  /** Takes this use back. Once the window has ended it is one more for the next. */
  giveBack(): Promise<void>;
}

/** Counts a use under a key. */
export interface Counter {
  (key: string): Promise<Consumption>;
  /** Forgets all uses under a key. */
  clear(key: string): Promise<void>;
}

/**
 * Sessions, flow states and counters. Every operation concerns one key, is atomic, and rejects
 * with SERVICE_UNAVAILABLE when the store does not answer within its deadline.
 */
export interface KeyValueStore {
  get(key: string): Promise<string | null>;
  /** Stores for `ttlMs`; with `ifExists` only over an existing value. Answers whether it stored. */
  set(key: string, value: string, options: { ttlMs: number; ifExists?: boolean }): Promise<boolean>;
  /** Removes a value and answers it, to one caller only. */
  take(key: string): Promise<string | null>;
  delete(key: string): Promise<void>;
  counter(allowance: Allowance): Counter;
  ping(): Promise<void>;
  close(): Promise<void>;
}
