import { pagePaths, sessionPaths } from '../../server/page-paths.ts';
import { returnAddress } from '../../server/return-to.ts';
import { arrivalQuery } from './arrival-query.ts';
import { dropDraft, keepDraft, readDraft } from './draft.ts';
import { settings } from './settings.ts';

/**
 * Where a login leads in the end: the page on which the user was when it was asked for, or the `returnTo` with which a front
 * end has sent the browser here. This tab remembers it, on the way through a provider too. `returnAddress` decides where that
 * may be, whatever has said it.
 */
const WAY_BACK = 'way-back';

const { acceptsLoopbackOrigins } = settings;
const ours = { origins: new Set(settings.origins), acceptsLoopbackOrigins };

const remember = (returnTo: string): void => keepDraft(WAY_BACK, { returnTo });

/** Before the way to the login. `query` is that of the address, or of a mailed link, without which its page is of no use. */
export const rememberPage = (query = location.search.slice(1)): void =>
  remember(location.pathname + (query && `?${query}`));

/** On the pages before the dashboard: what the address names, if it may. */
export function rememberAsked(): void {
  const asked = returnAddress(arrivalQuery.get('returnTo') ?? undefined, ours);
  if (asked !== undefined && !sessionPaths.some((path) => path === location.pathname)) remember(asked);
}

/** The address to go on to from the dashboard, where every login ends; once. */
export function takeWayBack(): string {
  const { returnTo } = readDraft(WAY_BACK);
  dropDraft(WAY_BACK);
  return returnAddress(returnTo, ours) ?? pagePaths.dashboard;
}
