import { pagePaths, sessionPaths } from '../../../server/shared/page-paths.ts';
import { returnAddress } from '../../../server/shared/return-to.ts';
import { withoutAskedLanguage } from '../language/asked-language.ts';
import { settings } from '../settings.ts';
import { arrivalQuery } from './arrival-query.ts';
import { dropDraft, keepDraft, readDraft } from './draft.ts';

/**
 * The target after a login: the page that required it, or the `returnTo` with which a front end sent the browser here.
 * This tab remembers it, also during a provider login. `returnAddress` decides which targets are allowed, whatever
 * their source.
 */
const WAY_BACK = 'way-back';
/** A front end asked for the target. Otherwise it is a page of ours, which may have a token in its query. */
const ASKED = 'asked';
/** A provider has got the target too: the service redirects to it, or to a page with it in the URL. */
const GIVEN = 'given';

const { acceptsLoopbackOrigins } = settings;
const ours = { origins: new Set(settings.origins), acceptsLoopbackOrigins };

const remember = (returnTo: string, isAsked = ''): void => keepDraft(WAY_BACK, { returnTo, isAsked });

/** Call before the login. `query`: by default the URL's; give a mailed link's if its page needs it. */
export const rememberPage = (query = location.search.slice(1)): void =>
  remember(location.pathname + (query && `?${query}`) + location.hash);

/**
 * Remembers the target in the URL, if it is allowed; not on pages of a session. The target that a provider has got is
 * forgotten, unless the user came back by the history: that login may be over.
 */
export function rememberAsked(): void {
  const isOfSession = sessionPaths.some((path) => path === location.pathname);
  if (readDraft(WAY_BACK)['isAsked'] === GIVEN) {
    if (isFromHistory() && !isOfSession) takeBack();
    else dropDraft(WAY_BACK);
  }
  if (isOfSession) return;
  const target = returnAddress(arrivalQuery.get('returnTo') ?? undefined, ours);
  if (target !== undefined) remember(target, ASKED);
}

const isFromHistory = (): boolean =>
  performance.getEntriesByType('navigation').some((entry) => 'type' in entry && entry.type === 'back_forward');

/** The browser came back from the provider. */
const takeBack = (): void => {
  if (askedTarget() !== undefined) keepDraft(WAY_BACK, { isAsked: ASKED });
};

/** The target stored with a mailed link, which the service has checked; undefined without one. */
export function rememberTarget(target: string | undefined): void {
  if (target !== undefined) remember(target, ASKED);
}

/** Whether the URL has `returnTo` and no error, and a target is remembered. */
export const hasReturnTarget = (): boolean =>
  arrivalQuery.has('returnTo') && !arrivalQuery.has('error') && wayBack() !== undefined;

const LED_ON = 'led-on';
const LOOP_MS = 10_000;

/**
 * Whether to redirect a logged-in user to the target; at most once in ten seconds: a front end that does not see the
 * session would send the browser here again and again.
 */
export function mayLeadOn(): boolean {
  const { at } = readDraft(LED_ON);
  if (at !== undefined && Date.now() - Number(at) < LOOP_MS) return false;
  keepDraft(LED_ON, { at: String(Date.now()) });
  return true;
}

/** Whether the dashboard only redirects; then it is not rendered. */
export function isOnlyPassedThrough(): boolean {
  const target = wayBack() ?? pagePaths.dashboard;
  return location.pathname === pagePaths.dashboard && target !== pagePaths.dashboard && !arrivalQuery.has('notice');
}

/** The remembered target, for a mailed link that may be opened in another tab. */
export const wayBack = (): string | undefined => returnAddress(readDraft(WAY_BACK).returnTo, ours);

/** The target that a provider may get. */
export const askedTarget = (): string | undefined => (readDraft(WAY_BACK)['isAsked'] ? wayBack() : undefined);

/** The provider gets the target, in this tab. */
export function giveAskedTarget(): void {
  if (askedTarget() === undefined) return;
  keepDraft(WAY_BACK, { isAsked: GIVEN });
  addEventListener('pageshow', ({ persisted }) => persisted && takeBack(), { once: true });
}

/** The page after a login. The dashboard redirects to the remembered target. */
export const endOfLogin = (): string =>
  wayBack() === undefined ? (settings.brand.home ?? pagePaths.dashboard) : pagePaths.dashboard;

/** The user has chosen a language: removes an application's choice from this URL and from the target. */
export function dropAskedLanguage(): void {
  history.replaceState(history.state, '', withoutAskedLanguage(location.href));
  const { returnTo } = readDraft(WAY_BACK);
  if (returnTo !== undefined) keepDraft(WAY_BACK, { returnTo: withoutAskedLanguage(returnTo) });
}

/** The target to continue to from the dashboard, where every login ends; returned once. */
export function takeWayBack(): string {
  const target = wayBack();
  dropDraft(WAY_BACK);
  return target ?? pagePaths.dashboard;
}
