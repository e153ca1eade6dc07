/**
 * Typed text survives errors, reloads and navigation, in this tab only. Passwords are never kept. The pages before the
 * login share one draft, so that an email is typed only once.
 */
export const beforeLogin = 'before-login';

/** What the menu shows of the user. Kept until the session has ended, so that the next page shows it at its first paint. */
export const shownUser = 'shown-user';

const ACTING = 'acting';

type Draft = Record<string, string>;

export function readDraft(key: string): Draft {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '{}') as Draft;
  } catch {
    // Storage is disabled: only the page keeps the text.
    return {};
  }
}

export function keepDraft(key: string, changes: Draft): void {
  try {
    sessionStorage.setItem(key, JSON.stringify({ ...readDraft(key), ...changes }));
  } catch {
    // Storage is disabled.
  }
}

/** Deletes one draft, or all, so that the next user who logs in sees none. */
export function dropDraft(key?: string): void {
  try {
    if (key === undefined) sessionStorage.clear();
    else sessionStorage.removeItem(key);
  } catch {
    // Storage is disabled.
  }
}

/** Deletes some texts of a draft. */
export function dropFromDraft(key: string, names: readonly string[]): void {
  const kept = Object.entries(readDraft(key)).filter(([name]) => !names.includes(name));
  dropDraft(key);
  keepDraft(key, Object.fromEntries(kept));
}

/** The next user of this tab is another one, maybe. */
export function dropShownUser(): void {
  dropDraft(shownUser);
  dropDraft(ACTING);
}

/** Whether an administrator acts for a user in this tab, as far as it is known before the profile is. */
export const isActing = (): boolean => 'since' in readDraft(ACTING);

export function noteActing(isSo: boolean): void {
  if (isSo) keepDraft(ACTING, { since: String(Date.now()) });
  else dropDraft(ACTING);
}
