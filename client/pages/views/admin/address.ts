import { pagePaths } from '../../../../server/shared/page-paths.ts';

/** The URL of the page with a query: `q` is the search, `user` the id of the shown user. */
export const addressOf = (query: { q: string } | { user: string }): string =>
  `${pagePaths.admin}?${new URLSearchParams(query)}`;
