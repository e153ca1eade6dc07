/**
 * Typed text survives errors, reloads and the way over other pages, in this tab alone. Passwords are never kept. The
 * pages before login share one draft, so that an address is typed once.
 */
export const beforeLogin = 'before-login';

type Draft = Record<string, string>;

export function readDraft(key: string): Draft {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '{}') as Draft;
  } catch {
    // The browser allows no storage here: then the text lives in the page alone.
    return {};
  }
}

export function keepDraft(key: string, changes: Draft): void {
  try {
    sessionStorage.setItem(key, JSON.stringify({ ...readDraft(key), ...changes }));
  } catch {
    // As above.
  }
}

/** Forgets one draft, or all of them: nothing stays behind for the next user who logs in. */
export function dropDraft(key?: string): void {
  try {
    if (key === undefined) sessionStorage.clear();
    else sessionStorage.removeItem(key);
  } catch {
    // As above.
  }
}
