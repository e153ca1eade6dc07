/**
 * The parameters of the mailed link that led here. The shell has moved them from the address into this entry of the
 * tab's history, so that no request, no bookmark and no onlooker gets the token, while a reload still works.
 */
export function mailedLink(): URLSearchParams {
  const state: unknown = history.state;
  const isOurs = typeof state === 'object' && state !== null && 'mailedLink' in state;
  return new URLSearchParams(isOurs ? String(state.mailedLink) : '');
}
