import { queryOfBegun } from './begun.ts';

/**
 * The result of another page, as `error` or `notice` in the query. It is removed from the URL, so that neither a reload
 * nor a bookmark repeats it, and replaced by the query that the page had before the user left for a provider.
 */
export const arrivalQuery = new URLSearchParams(location.search);

/** Opens the row of a login that was linked, or refused. */
const isOfLogins =
  arrivalQuery.get('notice')?.endsWith('linked') === true || arrivalQuery.get('error') === 'identity_taken';

if (arrivalQuery.has('error') || arrivalQuery.has('notice')) {
  const rest = queryOfBegun() || (isOfLogins ? '#logins' : '');
  history.replaceState(history.state, '', location.pathname + rest);
}
