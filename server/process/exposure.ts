import type { Config } from '../config/index.ts';

const readers: Record<Config['publicUsers'], string> = {
  full: 'everyone can read the names and addresses of all users',
  'without-email': 'everyone can read the names of all users, but no addresses',
  session: 'every logged-in user can read the names and addresses of all',
  off: 'only administrators can read users',
};

const registrants = ({ mode, domains }: Config['registration']): string =>
  ({
    open: 'everyone can create an account',
    domains: `addresses of ${domains.join(', ')} can create an account, and invited ones`,
    invited: 'only invited addresses can create an account',
    closed: 'nobody can create an account',
  })[mode];

/** A sentence each on who can register and who can read users. */
export const exposure = ({ publicUsers, registration }: Pick<Config, 'publicUsers' | 'registration'>): string[] => [
  `PUBLIC_USERS is ${publicUsers}: ${readers[publicUsers]}`,
  `REGISTRATION is ${registration.mode}: ${registrants(registration)}`,
];
