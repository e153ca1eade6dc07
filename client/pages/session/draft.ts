/**
 * Typed text survives errors, reloads and navigation, in this tab only. Passwords are never kept. The
 * pages before login share one draft, so that an email is typed once.
 */
export const beforeLogin = 'before-login';

type Draft = Record<string, string>;

export function readDraft(key: string): Draft {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '{}') as Draft;
  } catch {
    // The browser allows no storage here: then only the page keeps the text.
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

/** Deletes one draft, or all of them, so that the next user who logs in sees none. */
export function dropDraft(key?: string): void {
  try {
    if (key === undefined) sessionStorage.clear();
    else sessionStorage.removeItem(key);
  } catch {
    // As above.
  }
}
