import { lazy } from '../../lazy.ts';
import type { HashFamily } from './foreign-hash.ts';

const library = lazy(() => import('@node-rs/argon2'));

const form =
  /^\$argon2id?\$v=(?:16|19)\$m=([1-9]\d{0,9}),t=([1-9]\d{0,9}),p=([1-9]\d{0,2})\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{16,86}$/;

/** 256 MiB, in KiB. */
const MOST_MEMORY = 256 * 1024;
/** Memory times passes, in KiB: about a second of work. */
const MOST_WORK = 1024 * 1024;
const MOST_LANES = 16;

/** Argon2i and Argon2id in the form of the reference implementation (PHC string format). */
export const argon2: HashFamily = (stored) => {
  const [matched, ...parameters] = form.exec(stored) ?? [];
  if (matched === undefined) return undefined;
  const [memory = 0, passes = 0, lanes = 0] = parameters.map(Number);
  // RFC 9106 section 3.1: at least 8 KiB for each lane.
  if (memory < 8 * lanes) return undefined;
  return {
    isTooCostly: memory > MOST_MEMORY || memory * passes > MOST_WORK || lanes > MOST_LANES,
    matches: async (password) => (await library()).verify(stored, password),
  };
};
