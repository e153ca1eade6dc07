import { pagePaths } from '../../../../server/page-paths.ts';

/** The address of the page with a query: `q` is what is searched for, `user` the id of the user who is shown. */
export const addressOf = (query: { q: string } | { user: string }): string =>
  `${pagePaths.admin}?${new URLSearchParams(query)}`;
