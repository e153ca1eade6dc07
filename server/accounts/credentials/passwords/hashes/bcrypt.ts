import { lazy } from '../../lazy.ts';
import type { HashFamily } from './foreign-hash.ts';

const library = lazy(() => import('@node-rs/bcrypt'));

const form = /^\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/;

/** About a second of work. */
const HIGHEST_COST = 14;

/** bcrypt as nearly every product writes it. It reads the first 72 bytes of a password. */
export const bcrypt: HashFamily = (stored) => {
  const [, cost] = form.exec(stored) ?? [];
  return cost === undefined
    ? undefined
    : {
        isTooCostly: Number(cost) > HIGHEST_COST,
        matches: async (password) => (await library()).verify(password, stored),
      };
};
