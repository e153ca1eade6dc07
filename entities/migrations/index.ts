import { Accounts } from './0001-accounts.ts';
import { Identities } from './0002-identities.ts';
import { Uploads } from './0003-uploads.ts';
import { Search } from './0006-search.ts';

/** In the order in which they run. Listed rather than discovered: nothing is read from disk at start. */
export const migrations = [
  { name: '0001-accounts', class: Accounts },
  { name: '0002-identities', class: Identities },
  { name: '0003-uploads', class: Uploads },
  { name: '0006-search', class: Search },
];
