/**
 * The parameters of the mailed link that led here. The shell has moved them from the address into this entry of the
 * tab's history, so that the token is in no request, no bookmark and not on the screen, while a reload still works.
 */
export function mailedLink(): URLSearchParams {
  const state: unknown = history.state;
  const isOurs = typeof state === 'object' && state !== null && 'mailedLink' in state;
  return new URLSearchParams(isOurs ? String(state.mailedLink) : '');
}
