import type { ServiceSessionOutput } from './api.ts';
import { createServiceClient, type ServiceClientOptions } from './client.ts';

export interface SessionCheckerOptions extends ServiceClientOptions {
  /**
   * Cache time of a result: a session ends here at most this much later than at the account service. Call
   * `service.session` directly if that matters.
   */
  cacheSeconds: number;
  /** Maximum cached sessions; default 10000, of about 1 kB each. The one checked longest ago is dropped first. */
  maxSessions?: number | undefined;
}

export interface SessionChecker {
  /**
   * The user of a session, by the value of the cookie `auth_session` (see `sessionTokenIn`), or of an access key or
   * token (see `bearerTokenIn`), with its `scopes` and `credential`; null if invalid. If `fresh` is true, the session
   * was just renewed: set the cookie again, until `session.expiresAt`. Rejects like a call, with ServiceError,
   * NetworkError or TimeoutError; failures are not cached.
   */
  check(token: string): Promise<ServiceSessionOutput>;
  /**
   * The user of the session in a Cookie header; null if invalid. Never that of an access key or token, which allow only
   * their scopes. Otherwise like `check`.
   */
  checkCookies(cookies: string | null | undefined): Promise<ServiceSessionOutput>;
  /** The next check asks the service again. Call it after a logout through this process. */
  forget(token: string): Promise<void>;
}

interface Known {
  /** Shared by all callers while it is pending. */
  answer: Promise<ServiceSessionOutput>;
  /** By `performance.now()`; infinite while the call is pending. */
  until: number;
}

/**
 * Checks the sessions of requests to another service. A logout, a deletion, a new password or a changed profile takes
 * effect here up to `cacheSeconds` later. Concurrent checks of one session share a call.
 */
export function createSessionChecker({
  cacheSeconds,
  maxSessions = 10_000,
  ...options
}: SessionCheckerOptions): SessionChecker {
  const accounts = createServiceClient(options);
  /** Valid sessions only, by the hash of their token: invented tokens take no memory. The last checked is last. */
  const known = new Map<string, Known>();

  let earlier: Promise<unknown> = Promise.resolve();
  /** Keys in the order of the calls, whichever hash is computed first: `forget` must follow the `check` before it. */
  const keyOf = (token: string): Promise<string> => {
    const key = Promise.all([hashOf(token), earlier]).then(([hash]) => hash);
    earlier = key.catch(() => undefined);
    return key;
  };

  /** Caches the result, unless `forget` was called during the check. */
  const settle = async (key: string, entry: Known): Promise<void> => {
    const answer = await entry.answer.catch(() => null);
    if (known.get(key) !== entry) return;
    if (answer === null) known.delete(key);
    else known.set(key, { answer: Promise.resolve({ ...answer, fresh: false }), until: endOf(answer, cacheSeconds) });
  };

  const check = async (token: string): Promise<ServiceSessionOutput> => {
    if (token === '') return null;
    const key = await keyOf(token);
    const found = known.get(key);
    known.delete(key);
    if (found && found.until > performance.now()) {
      known.set(key, found);
      return found.answer;
    }
    const entry = { answer: accounts.service.session.mutate({ token }), until: Number.POSITIVE_INFINITY };
    known.set(key, entry);
    void settle(key, entry);
    const [oldest] = known.keys();
    if (known.size > maxSessions && oldest !== undefined) known.delete(oldest);
    return entry.answer;
  };

  return {
    check,

    async checkCookies(cookies) {
      const found = await check(sessionTokenIn(cookies));
      return found?.scopes ? null : found;
    },

    async forget(token) {
      known.delete(await keyOf(token));
    },
  };
}

const endOf = ({ session }: NonNullable<ServiceSessionOutput>, cacheSeconds: number): number =>
  performance.now() + Math.min(cacheSeconds * 1000, session.expiresAt * 1000 - Date.now());

async function hashOf(token: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return String.fromCharCode(...new Uint8Array(hash));
}

/** The session token in a Cookie header. Empty without a token, and with two, because one may be planted. */
export function sessionTokenIn(cookies: string | null | undefined): string {
  const [token = '', ...more] = [...(cookies ?? '').matchAll(/(?:^|;)\s*auth_session=([^;\s]*)/g)].map(
    ([, value]) => value,
  );
  return more.length === 0 ? token : '';
}

/** The access key or token in an Authorization header (RFC 6750). Empty without one. */
export const bearerTokenIn = (authorization: string | null | undefined): string =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
