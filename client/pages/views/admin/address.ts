import type { UsersFindInput } from 'account-client';
import { pagePaths } from '../../../../server/shared/page-paths.ts';

type Find = NonNullable<UsersFindInput>;

/** What the user list shows: search results, the users of one standing, or all users sorted. */
export type Listing = Pick<Find, 'q' | 'standing' | 'sort'>;

/** The URL of the page: `user` is the id of the shown user. */
export function addressOf(query: Listing | { user: string } | { tab: 'invitations' }): string {
  const search = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  return search.size > 0 ? `${pagePaths.admin}?${search}` : pagePaths.admin;
}

/** The list that the URL selects. The service refuses unknown values. */
export function listingOf(search: string): Listing {
  const query = new URLSearchParams(search);
  const read = (name: string) => query.get(name) || undefined;
  if (query.get('q')) return { q: read('q') };
  if (query.get('standing')) return { standing: read('standing') as Find['standing'] };
  return { sort: read('sort') as Find['sort'] };
}
