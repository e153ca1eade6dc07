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

const { acceptsLoopbackOrigins } = settings;
const ours = { origins: new Set(settings.origins), acceptsLoopbackOrigins };

const remember = (returnTo: string): void => keepDraft(WAY_BACK, { returnTo });

/** Call before the login. `query` is that of the URL, or of a mailed link whose page needs it. */
export const rememberPage = (query = location.search.slice(1)): void =>
  remember(location.pathname + (query && `?${query}`) + location.hash);

/** On the pages before the dashboard: the target in the URL, if allowed. */
export function rememberAsked(): void {
  const target = returnAddress(arrivalQuery.get('returnTo') ?? undefined, ours);
  if (target !== undefined && !sessionPaths.some((path) => path === location.pathname)) remember(target);
}

/** The target stored with a mailed link, which the service has checked; undefined without one. */
export function rememberTarget(target: string | undefined): void {
  if (target !== undefined) remember(target);
}

/** Whether the URL asks for a way back. */
export const isAskedToLeadOn = (): boolean =>
  arrivalQuery.has('returnTo') && !arrivalQuery.has('error') && wayBack() !== undefined;

const LED_ON = 'led-on';
const LOOP_MS = 10_000;

/**
 * Whether a logged-in user may be led on to the target. Not twice in ten seconds: a front end that does not see the
 * session would send the browser here again and again.
 */
export function mayLeadOn(): boolean {
  const { at } = readDraft(LED_ON);
  if (at !== undefined && Date.now() - Number(at) < LOOP_MS) return false;
  keepDraft(LED_ON, { at: String(Date.now()) });
  return true;
}

/** Whether the dashboard only leads on: it is not painted then. */
export function isOnlyPassedThrough(): boolean {
  const target = wayBack() ?? pagePaths.dashboard;
  return location.pathname === pagePaths.dashboard && target !== pagePaths.dashboard && !arrivalQuery.has('notice');
}

/** The remembered target, for a mailed link that may be opened in another tab. */
export const wayBack = (): string | undefined => returnAddress(readDraft(WAY_BACK).returnTo, ours);

/** Where a login leads: the dashboard goes on to a remembered target. */
export const endOfLogin = (): string =>
  wayBack() === undefined ? (settings.brand.home ?? pagePaths.dashboard) : pagePaths.dashboard;

/** The user has chosen a language: neither this page nor the target keeps that of an application. */
export function dropAskedLanguage(): void {
  history.replaceState(history.state, '', withoutAskedLanguage(location.href));
  const { returnTo } = readDraft(WAY_BACK);
  if (returnTo !== undefined) remember(withoutAskedLanguage(returnTo));
}

/** The target to continue to from the dashboard, where every login ends; returned once. */
export function takeWayBack(): string {
  const target = wayBack();
  dropDraft(WAY_BACK);
  return target ?? pagePaths.dashboard;
}
