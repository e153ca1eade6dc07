import { hash, randomBytes } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../errors.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { deviceOf } from './devices.ts';
import type { SessionRows } from './session-rows.ts';
import type { Account, Users } from './users.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** interface.md section 8. Sliding: a session that is used in its second half gets its whole life again. */
export const SESSION_LIFE_MS = 7 * DAY_MS;
/** A session ends this long after its login, however much it is used. */
const SESSION_CAP_MS = 30 * DAY_MS;
/** At the full hour the use of every session is due at once: these leave connections to the requests. */
const MOST_RECORDED = 3;
/** The column's length. */
const LONGEST_ADDRESS = 64;

interface StoredSession {
  /**
   * The id of its row. Absent where the version before, which knew no rows, has opened it: such a session is judged by
   * its epoch alone. All of them have ended 30 days after the upgrade: the next release can demand an id.
   */
  id?: string;
  userId: string;
  /** The user's session epoch at login: once the user's is higher, this session has ended. */
  epoch: number;
  createdAt: number;
  expiresAt: number;
}

/** A session that is valid now. `fresh`: its cookie must be set again. Times in milliseconds since 1970. */
export interface Session {
  /** Undefined for one that the version before has opened: it is in no list. */
  id: string | undefined;
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

/** What a session takes from the request that opens it. */
export interface LoginRequest {
  clientAddress: string;
  userAgent: string;
  /** The session token that it carried. */
  formerToken: string | undefined;
}

/** 256 random bits; the store has only their hash, so that a leaked store gives no access. */
const newToken = () => randomBytes(32).toString('base64url');
const keyOf = (token: string) => `session:${hash('sha256', token, 'base64url')}`;

/** Whether a text has the shape of a session token; any other text needs no look-up in the store. */
export const isSessionToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

/**
 * The store leads from a token to its session. Whether that is alive is in the database, where no failover of the store
 * and no snapshot of it can bring back what has ended: the session has a row, and its epoch is the user's.
 */
export function createSessions({ store, users, rows }: { store: KeyValueStore; users: Users; rows: SessionRows }) {
  const read = async (token: string): Promise<StoredSession | null> => {
    const stored = await store.get(keyOf(token));
    return stored === null ? null : (JSON.parse(stored) as StoredSession);
  };
  const save = (token: string, session: StoredSession, ifExists: boolean) =>
    store.set(keyOf(token), JSON.stringify(session), { ttlMs: session.expiresAt - Date.now(), ifExists });

  /** Ends a session by its token, which takes the store to find it. A row that is gone ends it, whatever becomes of its key. */
  const end = async (token: string): Promise<void> => {
    const session = await read(token);
    if (session === null) return;
    if (session.id !== undefined) await rows.end(session.id);
    const forgotten = store.delete(keyOf(token));
    await (session.id === undefined ? forgotten : forgotten.catch(() => undefined));
  };

  /** Stores a later end. `failed`: a part does not take changes now; the session is good as it was. */
  const renew = async (token: string, session: StoredSession): Promise<'renewed' | 'ended' | 'failed'> => {
    const { id, expiresAt } = session;
    try {
      // The row first: it must not be swept while the store has the session.
      if (id !== undefined && !(await rows.recordUse(id, expiresAt - Date.now()))) return 'ended';
      // Only replaces a stored session: one that was logged out in this moment must not come back.
      return (await save(token, session, true)) ? 'renewed' : 'ended';
    } catch (error) {
      if (error instanceof ServiceError) return 'failed';
      throw error;
    }
  };

  const inRecord = new Set<string>();
  /** Behind the answer, and one at a time for each session. What fails, or finds no place, is tried again by the next use. */
  const recordUse = (id: string, lifeMs: number): void => {
    if (inRecord.has(id) || inRecord.size >= MOST_RECORDED) return;
    inRecord.add(id);
    rows
      .recordUse(id, lifeMs)
      .catch(() => false)
      .finally(() => inRecord.delete(id));
  };

  return {
    /**
     * The one way to open a session, whatever the credential. It ends the session that the request carried and makes a
     * new token, so that a token that an attacker has planted in the browser never becomes the user's (session fixation:
     * OWASP ASVS 7.2.4). `user` must have been read before the credential was checked: if all sessions are ended
     * meanwhile, say by a reset of the password, the epoch that was read makes this one void too. `method` is
     * `password` or the name of the provider.
     */
    async openSession(
      user: Account,
      method: string,
      { clientAddress, userAgent, formerToken }: LoginRequest,
    ): Promise<Login> {
      if (formerToken !== undefined) await end(formerToken);
      const [id, token, createdAt] = [uuidv7(), newToken(), Date.now()];
      const expiresAt = createdAt + SESSION_LIFE_MS;
      // The row comes last: a crash before it leaves a key that opens nothing, and no row that nobody can use.
      await save(token, { id, userId: user.id, epoch: user.sessionEpoch, createdAt, expiresAt }, false);
      const address = clientAddress.slice(0, LONGEST_ADDRESS);
      await rows.insert(user, { id, method, address, device: await deviceOf(userAgent), lifeMs: SESSION_LIFE_MS });
      return { user, token, expiresAt };
    },

    /** One look-up in the store and one row read. Rejects when either is out of reach: an outage is no logout. */
    async validate(token: string): Promise<Session | null> {
      const session = await read(token);
      const now = Date.now();
      if (session === null || session.expiresAt <= now) return null;
      const { id, createdAt } = session;
      const user: (Account & { isUseDue?: number }) | undefined = await (id === undefined
        ? users.find(session.userId)
        : rows.find(id));
      if (user?.sessionEpoch !== session.epoch) return null;

      const expiresAt = renewedExpiry(session, now);
      if (expiresAt > session.expiresAt) {
        const outcome = await renew(token, { ...session, expiresAt });
        if (outcome === 'ended') return null;
        if (outcome === 'renewed') return { id, user, createdAt, expiresAt, fresh: true };
      } else if (user.isUseDue === 1 && id !== undefined) recordUse(id, expiresAt - now);
      return { id, user, createdAt, expiresAt: session.expiresAt, fresh: false };
    },

    end,
    endAll: rows.endAll,
    list: rows.list,

    /** Ends a session of the user by its id. Answers whether there was one. */
    endOf: (user: Account, id: string): Promise<boolean> => rows.end(id, user.id),
  };
}

export type Sessions = ReturnType<typeof createSessions>;

function renewedExpiry({ createdAt, expiresAt }: StoredSession, now: number): number {
  const isInSecondHalf = expiresAt - now < SESSION_LIFE_MS / 2;
  return isInSecondHalf ? Math.min(now + SESSION_LIFE_MS, createdAt + SESSION_CAP_MS) : expiresAt;
}
