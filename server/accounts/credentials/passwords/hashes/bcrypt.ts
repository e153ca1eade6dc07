import { lazy } from '../../../../lib/lazy.ts';
import type { HashFamily } from './foreign-hash.ts';

const library = lazy(() => import('@node-rs/bcrypt'));

const form = /^\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/;

/** About a second of computation. */
const MAX_COST = 14;

/** bcrypt in its common form. It uses only the first 72 bytes of a password. */
export const bcrypt: HashFamily = (stored) => {
  const [, cost] = form.exec(stored) ?? [];
  return cost === undefined
    ? undefined
    : {
        isTooCostly: Number(cost) > MAX_COST,
        memory: 4096,
        matches: async (password) => (await library()).verify(password, stored),
      };
};
