/**
 * What somebody has typed survives errors, reloads and the way over other pages, in this tab alone. Passwords are never
 * kept. The pages before login share one draft, so that an address is typed once.
 */
export const beforeLogin = 'before-login';

type Draft = Record<string, string>;

export function readDraft(key: string): Draft {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '{}') as Draft;
  } catch {
    // No storage is allowed here: then the page itself is all there is.
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

/** Forgets one draft, or all of them: nothing stays behind for whoever logs in next. */
export function dropDraft(key?: string): void {
  try {
    if (key === undefined) sessionStorage.clear();
    else sessionStorage.removeItem(key);
  } catch {
    // As above.
  }
}
