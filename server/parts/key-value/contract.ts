import type { z } from 'zod';

/** `points` uses per window in seconds, counted under its own name. */
interface Allowance {
  name: string;
  points: number;
  seconds: number;
}

/** One counted use; `allowed` is false beyond the allowance. */
export interface Consumption {
  allowed: boolean;
  /** The uses of the key in this window, this one included. */
  used: number;
  /** Milliseconds until the window ends. */
  msBeforeNext: number;
  /** Takes this use back. After the end of the window it adds one to the next. */
  refund(): Promise<void>;
}

export interface Counter {
  (key: string): Promise<Consumption>;
  /** The uses of a key in this window; counts nothing. */
  read(key: string): Promise<number>;
  /** Resets the uses of a key. */
  clear(key: string): Promise<void>;
}

/**
 * Sessions, flow states and counters. Each operation concerns one key and is atomic; it rejects with
 * SERVICE_UNAVAILABLE if the store does not respond in time.
 */
export interface KeyValueStore {
  /**
   * Null without a value, or if the schema does not accept it. A value stored under another key is an outage: rejects
   * with SERVICE_UNAVAILABLE.
   */
  get<Value>(key: string, schema: z.ZodType<Value>): Promise<Value | null>;
  /**
   * Stores the value as JSON for `ttlMs`; with `ifExists` only over an existing value. Resolves to true if it was
   * stored.
   */
  set(key: string, value: object, options: SetOptions): Promise<boolean>;
  /** Removes a value and resolves to it, as `get` does, for one caller only. */
  take<Value>(key: string, schema: z.ZodType<Value>): Promise<Value | null>;
  delete(key: string): Promise<void>;
  counter(allowance: Allowance): Counter;
  ping(): Promise<void>;
  close(): Promise<void>;
}

interface SetOptions {
  ttlMs: number;
  ifExists?: boolean;
}

/** The store as Redis or the file implements it: values are texts. */
export interface TextStore extends Omit<KeyValueStore, 'get' | 'set' | 'take'> {
  get(key: string): Promise<string | null>;
  set(key: string, text: string, options: SetOptions): Promise<boolean>;
  take(key: string): Promise<string | null>;
}
