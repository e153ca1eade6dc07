import type { ServiceSessionOutput } from './api.ts';
import { createServiceClient, type ServiceClientOptions } from './client.ts';

export interface SessionCheckerOptions extends ServiceClientOptions {
  /** How long an answer is good for: how much later than at the account service a session ends here. */
  cacheSeconds: number;
  /** The most sessions that are remembered; 10000, of about 1 kB each. The one that was asked for longest ago is forgotten first. */
  maxSessions?: number | undefined;
}

export interface SessionChecker {
  /**
   * Whose session it is, by the value of the cookie `auth_session` (see `sessionTokenIn`); null for none. Where `fresh` is
   * true the session was just prolonged: set the cookie again, until `session.expiresAt`. Rejects as calls do, with
   * ServiceError, NetworkError or TimeoutError; a failure is never remembered.
   */
  check(token: string): Promise<ServiceSessionOutput>;
  /** Asks the service again at the next check: after a logout that goes through this process. */
  forget(token: string): Promise<void>;
}

interface Known {
  /** Shared by all who ask while it is under way. */
  answer: Promise<ServiceSessionOutput>;
  /** By `performance.now()`; infinite while the answer is under way. */
  until: number;
}

/**
 * Checks the sessions of requests to another service. Answers are kept for `cacheSeconds`: a logout, a deleted account, a new
 * password or a changed profile takes effect here that much later. Ask `service.session` itself where that matters. Checks of
 * one session at once are one call. Sessions are remembered by the hash of their token, and only those that there are, so that
 * made-up tokens take no room.
 */
export function createSessionChecker({
  cacheSeconds,
  maxSessions = 10_000,
  ...options
}: SessionCheckerOptions): SessionChecker {
  const accounts = createServiceClient(options);
  /** By the hash of the token; the one that was asked for last is the last. */
  const known = new Map<string, Known>();

  /** Keeps the answer, unless it is forgotten meanwhile. */
  const settle = async (key: string, entry: Known): Promise<void> => {
    const answer = await entry.answer.catch(() => null);
    if (known.get(key) !== entry) return;
    if (answer === null) known.delete(key);
    else known.set(key, { answer: Promise.resolve({ ...answer, fresh: false }), until: endOf(answer, cacheSeconds) });
  };

  return {
    async check(token) {
      if (token === '') return null;
      const key = await hashOf(token);
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
    },

    async forget(token) {
      known.delete(await hashOf(token));
    },
  };
}

const endOf = ({ session }: NonNullable<ServiceSessionOutput>, cacheSeconds: number): number =>
  performance.now() + Math.min(cacheSeconds * 1000, session.expiresAt * 1000 - Date.now());

async function hashOf(token: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return String.fromCharCode(...new Uint8Array(hash));
}

/** The session's token in a header Cookie; empty without one, and where there are two, of which one was planted. */
export function sessionTokenIn(cookies: string | null | undefined): string {
  const [token = '', ...more] = [...(cookies ?? '').matchAll(/(?:^|;)\s*auth_session=([^;\s]*)/g)].map(
    ([, value]) => value,
  );
  return more.length === 0 ? token : '';
}
