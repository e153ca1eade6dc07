import { queryOfBegun } from '../views/dashboard/begun.ts';

/**
 * The result of another page, as `error` or `notice` in the query. It is removed from the URL, so that neither a reload
 * nor a bookmark repeats it, and replaced by the query that the page had before the user left for a provider.
 */
export const arrivalQuery = new URLSearchParams(location.search);

if (arrivalQuery.has('error') || arrivalQuery.has('notice')) {
  history.replaceState(history.state, '', location.pathname + queryOfBegun());
}
