import type { Config } from '../config/index.ts';

const readers: Record<Config['publicUsers'], string> = {
  full: 'everyone can read the names and addresses of all users',
  'without-email': 'everyone can read the names of all users, and no address',
  session: 'every logged-in user can read the names and addresses of all',
  off: 'administrators alone can read who the users are',
};

const registrants = ({ mode, domains }: Config['registration']): string =>
  ({
    open: 'everyone can create an account',
    domains: `addresses of ${domains.join(', ')} can create an account, and invited ones`,
    invited: 'invited addresses alone can create an account',
    closed: 'nobody can create an account',
  })[mode];

/** Who can become a user, and who can read of users: a sentence for each setting. */
export const exposure = ({ publicUsers, registration }: Pick<Config, 'publicUsers' | 'registration'>): string[] => [
  `PUBLIC_USERS is ${publicUsers}: ${readers[publicUsers]}`,
  `REGISTRATION is ${registration.mode}: ${registrants(registration)}`,
];
