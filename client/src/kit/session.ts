import type { Client, Profile } from '../api.ts';
import { createClient } from '../client.ts';
import { isServiceError } from '../errors.ts';
import { watchersOf } from '../unauthenticated.ts';

/** Who is logged in, as a page knows it. `error` is the failure of the last check, if it failed. */
export type Session =
  | { readonly status: 'pending'; readonly user: undefined; readonly error?: unknown }
  | {
      readonly status: 'logged-in';
      readonly user: Profile;
      /** Set while an administrator acts for the user: show a bar with a button that logs out. */
      readonly impersonation?: Impersonation | undefined;
      readonly error?: unknown;
    }
  | { readonly status: 'logged-out'; readonly user: null; readonly error?: unknown };

/** The administrator who acts for the user. A server does not know `expiresAt`. */
export interface Impersonation {
  /** The id of the administrator. */
  readonly by: string;
  /** When the session ends, in Unix seconds. */
  readonly expiresAt?: number | undefined;
}

/** What a server knows when it renders a page: the answer of its `sessionOf`. */
export type InitialSession = { readonly user: Profile; readonly impersonation?: Impersonation | undefined } | null;

export interface SessionStoreOptions {
  /** Base URL of the service, such as `https://accounts.example.com`. */
  url: string;
  /** With it nothing is pending, and the first paint is final. Undefined where no server knows the session. */
  initialSession?: InitialSession | undefined;
  /** Replaces `createClient({ url })`. */
  client?: Client | undefined;
  /** The session is checked again when the tab is shown after this many seconds; default 60. */
  recheckSeconds?: number | undefined;
}

/** The pages of the service that a front end links to. */
export type ServicePage = '/login' | '/register' | '/forgot-password' | '/dashboard' | '/dashboard/security';

/** For `useSyncExternalStore` and its like: a snapshot is the same object until something changes. */
export interface SessionStore {
  readonly client: Client;
  /** The first subscriber starts the check of a session that is pending or had no subscribers; all share one request. */
  subscribe(this: void, listener: () => void): () => void;
  getSnapshot(this: void): Session;
  /** What the server has rendered: pending, or the `initialSession`. */
  getServerSnapshot(this: void): Session;
  /** Checks the session now, such as after a login by the client. Never rejects: see `error`. */
  refresh(this: void): Promise<Session>;
  /** Stores the user whom a call has returned, such as `profile.update`. Other tabs learn it too. */
  set(this: void, user: Profile | null): void;
  /** Ends the session, here and in other tabs. Rejects like a call. */
  logOut(this: void): Promise<void>;
  /** The address of a page of the service, which leads back to `returnTo` after the login: by default to this page. */
  pageUrl(this: void, page: ServicePage, returnTo?: string): string;
}

export function createSessionStore({
  url,
  initialSession,
  client = createClient({ url }),
  recheckSeconds = 60,
}: SessionStoreOptions): SessionStore {
  const initial = sessionOf(initialSession);
  const listeners = new Set<() => void>();
  let current = initial;
  let checkedAt = Date.now();
  /** Answers to questions of an earlier turn are outdated. */
  let turn = 0;
  let checking: Promise<Session> | undefined;
  let tabs: BroadcastChannel | undefined;
  let unwatch: (() => void) | undefined;
  /** Without subscribers the store learns nothing. */
  let isOutdated = false;
  /** Whom other tabs show that no check has confirmed since. */
  const doubted = new Set<string | null>();

  const show = (next: Session): boolean => {
    if (next.error === current.error && textOf(next) === textOf(current)) return false;
    current = next;
    for (const notify of listeners) notify();
    return true;
  };

  const learn = (known: InitialSession): boolean => {
    turn += 1;
    checkedAt = Date.now();
    doubted.clear();
    return show(sessionOf(known));
  };

  const tell = (known: InitialSession): void => {
    const isDoubted = [...doubted].some((shown) => shown !== idOf(sessionOf(known)));
    if (learn(known) || isDoubted) tabs?.postMessage({ known } satisfies News);
  };

  /** Calls that return a user do not name the administrator who acts: that of the same user stays. */
  const set = (user: Profile | null): void => {
    const known = current.status === 'logged-in' && current.user.id === user?.id ? current : undefined;
    tell(user && { user, impersonation: known?.impersonation });
  };

  /**
   * Any call may learn that the session has ended or is of another user; one that began before a login knows nothing of it. Only `profile.get`
   * decides: other answers may be about a pending login, such as that of `auth.secondFactor`.
   */
  const whileCalling = (procedure: string) => {
    const own = turn;
    return () => {
      if (own !== turn) return;
      if (procedure === 'profile.get') set(null);
      else void refresh();
    };
  };

  const ask = async (own: number): Promise<Session> => {
    const answer = await client.profile.get.query().catch((error: unknown) => ({ user: undefined, error }));
    if (own !== turn) return current;
    if (answer.user) tell(answer);
    else if (isServiceError(answer.error, 'UNAUTHENTICATED')) set(null);
    else show({ ...current, error: answer.error });
    return current;
  };

  const refresh = (): Promise<Session> => {
    turn += 1;
    const asked = ask(turn).finally(() => {
      if (checking === asked) checking = undefined;
    });
    checking = asked;
    return asked;
  };

  const check = (): Promise<Session> => checking ?? refresh();

  const checkIfOld = (): void => {
    const isOld = current.error !== undefined || Date.now() - checkedAt >= recheckSeconds * 1000;
    if (isOld && document.visibilityState === 'visible') void check();
  };

  /** On a page only: React Native has none of these. */
  const watch = (): (() => void) => {
    const events = new AbortController();
    // Where it is missing, such as in Safari before 15.4, each tab learns it by its own check.
    const channel = globalThis.BroadcastChannel && new BroadcastChannel(`account-client ${url}`);
    tabs = channel;
    channel?.addEventListener('message', ({ data }: MessageEvent<News>) => {
      if ('known' in data) learn(data.known);
      // A check under way may have been answered before the login of that tab.
      else if (data.shows !== idOf(current) || checking) {
        doubted.add(data.shows);
        void refresh();
      } else turn += 1;
    });
    // A server has rendered it, such as after a login. Its user may be outdated, so the other tabs ask.
    if (current.status !== 'pending') channel?.postMessage({ shows: idOf(current) } satisfies News);
    document.addEventListener('visibilitychange', checkIfOld, events);
    addEventListener('online', checkIfOld, events);
    // A page of the back-forward cache shows its former user.
    addEventListener('pageshow', ({ persisted }) => persisted && void check(), events);
    return () => {
      events.abort();
      channel?.close();
      tabs = undefined;
    };
  };

  return {
    client,
    subscribe(listener) {
      const notify = () => listener();
      listeners.add(notify);
      watchersOf.get(client)?.add(whileCalling);
      if (globalThis.document) unwatch ??= watch();
      if (current.status === 'pending' || isOutdated) void check();
      isOutdated = false;
      return () => {
        listeners.delete(notify);
        if (listeners.size > 0) return;
        isOutdated = true;
        watchersOf.get(client)?.delete(whileCalling);
        unwatch?.();
        unwatch = undefined;
      };
    },
    getSnapshot: () => current,
    getServerSnapshot: () => initial,
    refresh,
    set,
    async logOut() {
      await client.auth.logout.mutate().catch((error: unknown) => {
        // The session has ended already.
        if (!isServiceError(error, 'UNAUTHENTICATED')) throw error;
      });
      set(null);
    },
    pageUrl(page, returnTo = globalThis.location?.href) {
      const isBefore = returnTo !== undefined && !page.startsWith('/dashboard');
      return `${url.replace(/\/+$/, '')}${page}${isBefore ? `?${new URLSearchParams({ returnTo })}` : ''}`;
    },
  };
}

/** What tabs tell each other: a session that has changed, or the user whom a tab shows from the beginning. */
type News = { known: InitialSession } | { shows: string | null };

const idOf = ({ user }: Session): string | null => user?.id ?? null;

const textOf = ({ error, ...known }: Session): string => JSON.stringify(known);

/** How a session differs from the one that a server has rendered; empty if it does not. */
export function differenceFrom(rendered: InitialSession, session: Session): string {
  const [known, shown] = [textOf(sessionOf(rendered)), textOf(session)];
  return known === shown ? '' : `${known} ${shown}`;
}

function sessionOf(known: InitialSession | undefined): Session {
  if (!known) return known === null ? { status: 'logged-out', user: null } : { status: 'pending', user: known };
  const { user, impersonation } = known;
  return { status: 'logged-in', user, ...(impersonation && { impersonation }) };
}
