import { hash, randomBytes } from 'node:crypto';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { Account, Users } from './users.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** interface.md section 8. Sliding: a session that is used in its second half gets its whole life again. */
export const SESSION_LIFE_MS = 7 * DAY_MS;
/** A session ends this long after its login, however much it is used. */
const SESSION_CAP_MS = 30 * DAY_MS;

interface StoredSession {
  userId: string;
  /** The user's session epoch at login: once the user's is higher, this session has ended. */
  epoch: number;
  createdAt: number;
  expiresAt: number;
}

/** A session that is valid now. `fresh`: its cookie must be set again. Times in milliseconds since 1970. */
export interface Session {
  user: Account;
  createdAt: number;
  expiresAt: number;
  fresh: boolean;
}

/** A session that was just opened. `expiresAt` in milliseconds since 1970. */
export interface Login {
  user: Account;
  token: string;
  expiresAt: number;
}

/** 256 random bits; the store has only their hash, so that a leaked store gives no access. */
const newToken = () => randomBytes(32).toString('base64url');
const keyOf = (token: string) => `session:${hash('sha256', token, 'base64url')}`;

/** Whether a text has the shape of a session token; any other text needs no look-up in the store. */
export const isSessionToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

/** Sessions live in the key-value store; the epoch in the user's row shows whether one has been ended. */
export function createSessions({ store, users }: { store: KeyValueStore; users: Users }) {
  const save = (token: string, session: StoredSession, ifExists: boolean) =>
    store.set(keyOf(token), JSON.stringify(session), { ttlMs: session.expiresAt - Date.now(), ifExists });

  const end = (token: string): Promise<void> => store.delete(keyOf(token));

  return {
    /**
     * The one way to open a session, whatever the credential. It ends the session that the request carried and makes a
     * new token, so that a token that an attacker has planted in the browser never becomes the user's (session fixation:
     * OWASP ASVS 7.2.4). `user` must have been read before the credential was checked: if all sessions are ended
     * meanwhile, say by a reset of the password, the epoch that was read makes this one void too.
     */
    async openSession(user: Account, formerToken: string | undefined): Promise<Login> {
      const token = newToken();
      const createdAt = Date.now();
      const expiresAt = createdAt + SESSION_LIFE_MS;
      await Promise.all([
        formerToken !== undefined && end(formerToken),
        save(token, { userId: user.id, epoch: user.sessionEpoch, createdAt, expiresAt }, false),
      ]);
      return { user, token, expiresAt };
    },

    /** One look-up in the store and one row read. Rejects when either is out of reach: an outage is no logout. */
    async validate(token: string): Promise<Session | null> {
      const stored = await store.get(keyOf(token));
      if (stored === null) return null;
      const session = JSON.parse(stored) as StoredSession;
      const now = Date.now();
      if (session.expiresAt <= now) return null;
      const user = await users.find(session.userId);
      if (!user || user.sessionEpoch !== session.epoch) return null;

      const expiresAt = renewedExpiry(session, now);
      const fresh = expiresAt > session.expiresAt;
      // Only replaces a stored session: one that was logged out in this moment must not come back.
      if (fresh && !(await save(token, { ...session, expiresAt }, true))) return null;
      return { user, createdAt: session.createdAt, expiresAt, fresh };
    },

    end,
  };
}

export type Sessions = ReturnType<typeof createSessions>;

function renewedExpiry({ createdAt, expiresAt }: StoredSession, now: number): number {
  const isInSecondHalf = expiresAt - now < SESSION_LIFE_MS / 2;
  return isInSecondHalf ? Math.min(now + SESSION_LIFE_MS, createdAt + SESSION_CAP_MS) : expiresAt;
}
