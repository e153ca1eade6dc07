import type { Client, Profile } from '../api.ts';
import { createClient } from '../client.ts';
import { isServiceError } from '../errors.ts';

/** Who is logged in, as a page knows it. `error` is the failure of the last check, if it failed. */
export type Session =
  | { readonly status: 'pending'; readonly user: undefined; readonly error?: unknown }
  | { readonly status: 'logged-in'; readonly user: Profile; readonly error?: unknown }
  | { readonly status: 'logged-out'; readonly user: null; readonly error?: unknown };

/** What a server knows when it renders a page: the answer of its `sessionOf`. */
export type InitialSession = { readonly user: Profile } | null;

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
  /** The first subscriber starts the check of a pending session; all share one request. */
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
  const initial = sessionOf(initialSession === undefined ? undefined : (initialSession?.user ?? null));
  const listeners = new Set<() => void>();
  let current = initial;
  let checkedAt = Date.now();
  /** Answers to questions of an earlier turn are outdated. */
  let turn = 0;
  let checking: Promise<unknown> | undefined;
  let tabs: BroadcastChannel | undefined;
  let unwatch: (() => void) | undefined;

  const show = (user: Profile | null | undefined, error?: unknown): boolean => {
    if (error === current.error && JSON.stringify(user) === JSON.stringify(current.user)) return false;
    current = sessionOf(user, error);
    for (const notify of listeners) notify();
    return true;
  };

  const learn = (user: Profile | null): boolean => {
    turn += 1;
    checkedAt = Date.now();
    return show(user);
  };

  const set = (user: Profile | null): void => {
    if (learn(user)) tabs?.postMessage({ user } satisfies News);
  };

  const refresh = async (): Promise<Session> => {
    turn += 1;
    const own = turn;
    const answer = await client.profile.get.query().catch((error: unknown) => ({ user: undefined, error }));
    if (own !== turn) return current;
    if (answer.user) set(answer.user);
    else if (isServiceError(answer.error, 'UNAUTHENTICATED')) set(null);
    else show(current.user, answer.error);
    return current;
  };

  const check = (): Promise<unknown> => {
    checking ??= refresh().finally(() => {
      checking = undefined;
    });
    return checking;
  };

  const checkIfOld = (): void => {
    const isOld = current.error !== undefined || Date.now() - checkedAt >= recheckSeconds * 1000;
    if (isOld && document.visibilityState === 'visible') void check();
  };

  /** On a page only: React Native has none of these. */
  const watch = (): (() => void) => {
    const events = new AbortController();
    const channel = new BroadcastChannel(`account-client ${url}`);
    tabs = channel;
    channel.onmessage = ({ data }: MessageEvent<News>) => {
      if ('user' in data) learn(data.user);
      else if (data.shows !== idOf(current)) void check();
    };
    // A server has rendered it, such as after a login. Its user may be outdated, so the other tabs ask.
    if (current.status !== 'pending') channel.postMessage({ shows: idOf(current) } satisfies News);
    document.addEventListener('visibilitychange', checkIfOld, events);
    addEventListener('online', checkIfOld, events);
    // A page of the back-forward cache shows its former user.
    addEventListener('pageshow', ({ persisted }) => persisted && void check(), events);
    return () => {
      events.abort();
      channel.close();
      tabs = undefined;
    };
  };

  return {
    client,
    subscribe(listener) {
      const notify = () => listener();
      listeners.add(notify);
      if (globalThis.document) unwatch ??= watch();
      if (current.status === 'pending') void check();
      return () => {
        listeners.delete(notify);
        if (listeners.size > 0) return;
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

/** What tabs tell each other: a user who has changed, or whom a tab shows from the beginning. */
type News = { user: Profile | null } | { shows: string | null };

const idOf = ({ user }: Session): string | null => user?.id ?? null;

function sessionOf(user: Profile | null | undefined, error?: unknown): Session {
  const failure = error === undefined ? {} : { error };
  if (user === undefined) return { status: 'pending', user, ...failure };
  return user ? { status: 'logged-in', user, ...failure } : { status: 'logged-out', user: null, ...failure };
}
