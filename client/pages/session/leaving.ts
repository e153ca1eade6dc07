/**
 * Call it once a navigation has begun: what waits for it stays busy until the browser leaves. Resolves only if the page
 * comes back from the back/forward cache.
 */
export const leaving = (): Promise<void> =>
  new Promise((resolve) => addEventListener('pageshow', ({ persisted }) => persisted && resolve()));
