import { lazy } from '../../../../lib/lazy.ts';
import { isStrictBase64 } from './bytes.ts';
import type { HashFamily } from './foreign-hash.ts';

const library = lazy(() => import('@node-rs/argon2'));

const form =
  /^\$argon2id?\$v=(?:16|19)\$m=([1-9]\d{0,9}),t=([1-9]\d{0,9}),p=([1-9]\d{0,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,86})$/;

/** 256 MiB, in KiB. */
const MAX_MEMORY = 256 * 1024;
/** Memory times passes, in KiB: about a second of computation. */
const MAX_WORK = 1024 * 1024;
const MAX_LANES = 16;

/** Argon2i and Argon2id in the form of the reference implementation (PHC string format). */
export const argon2: HashFamily = (stored) => {
  const [matched, m, t, p, salt = '', hash = ''] = form.exec(stored) ?? [];
  if (matched === undefined) return undefined;
  const [memory, passes, lanes] = [Number(m), Number(t), Number(p)];
  // RFC 9106 section 3.1: at least 8 KiB for each lane.
  if (memory < 8 * lanes || !isStrictBase64(salt) || !isStrictBase64(hash)) return undefined;
  return {
    memory: memory * 1024,
    isTooCostly: memory > MAX_MEMORY || memory * passes > MAX_WORK || lanes > MAX_LANES,
    matches: async (password) => (await library()).verify(stored, password),
  };
};
