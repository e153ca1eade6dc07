/** An allowance of `points` uses in so many seconds, counted under a name of its own. */
export interface Allowance {
  name: string;
  points: number;
  seconds: number;
}

/** The rest of an allowance after one use: `remaining` is 0 and `allowed` false once the allowance is used up. */
export interface Consumption {
  allowed: boolean;
  remaining: number;
  /** Milliseconds until the window ends. */
  msBeforeNext: number;
}

/**
 * Sessions, flow states and counters. Every operation concerns one key (so a cluster can spread them), is atomic, and
 * rejects with SERVICE_UNAVAILABLE when the store does not answer soon.
 */
export interface KeyValueStore {
  get(key: string): Promise<string | null>;
  /** Stores for `ttlMs`; with `ifExists` only over an existing value. Answers whether it stored. */
  set(key: string, value: string, options: { ttlMs: number; ifExists?: boolean }): Promise<boolean>;
  /** Removes a value and hands it to exactly one caller. */
  take(key: string): Promise<string | null>;
  delete(key: string): Promise<void>;
  counter(allowance: Allowance): (key: string) => Promise<Consumption>;
  ping(): Promise<void>;
  close(): Promise<void>;
}
