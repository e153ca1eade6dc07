/**
 * Typed text survives errors, reloads and navigation, in this tab only. Passwords are never kept. The pages before the
 * login share one draft, so that an email is typed only once.
 */
export const beforeLogin = 'before-login';

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
