import { queryOfBegun } from './views/dashboard/begun.ts';

/**
 * The outcome with which the browser was sent to this page: `error` or `notice`. It leaves the address, so that neither a
 * reload nor a bookmark repeats it; the query that the page had before the way to a provider takes its place.
 */
export const arrivalQuery = new URLSearchParams(location.search);

if (arrivalQuery.has('error') || arrivalQuery.has('notice')) {
  history.replaceState(history.state, '', location.pathname + queryOfBegun());
}
