import { hash, randomBytes } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Caller } from '../activity/caller.ts';
import { deviceOf } from '../activity/devices.ts';
import { ServiceError } from '../errors.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { DeviceRequest, KnownDevices } from './known-devices.ts';
import type { Outbox } from './outbox.ts';
import type { SessionRows, StoredCredential } from './session-rows.ts';
import type { NextSession } from './sessions-of-user.ts';
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

/** The session in which a user acts, and its token. */
export interface OwnSession {
  session: Session;
  token: string;
}

/** What a session's cookie is set from. `expiresAt` in milliseconds since 1970. */
export type SessionCookie = Pick<Login, 'token' | 'expiresAt'>;

/** A session that was just opened. `expiresAt` in milliseconds since 1970. */
export interface Login {
  user: Account;
  token: string;
  expiresAt: number;
  /** The new value of the device's own cookie. */
  deviceCookie: string;
}

/** The request that opens a session. */
export interface LoginRequest extends DeviceRequest {
  /** The session token that it carried. */
  formerToken: string | undefined;
}

/** What a session is opened with. */
export interface Credential extends StoredCredential {
  /** `password`, `passkey`, or the name of the provider. */
  method: string;
  /** How long ago the user gave it, where a provider has remembered the user and says so. 0 by default. */
  ageMs?: number | undefined;
  /** What was given after it, where the user has an authenticator app. */
  secondFactor?: string;
}

interface Parts {
  store: KeyValueStore;
  users: Pick<Users, 'find'>;
  rows: SessionRows;
  devices: Pick<KnownDevices, 'recordLogin'>;
  outbox: Pick<Outbox, 'wake'>;
}

/** 256 random bits; the store has only their hash, so that a leaked store gives no access. */
const newToken = () => randomBytes(32).toString('base64url');
const hashOf = (token: string) => hash('sha256', token, 'base64url');
const keyOfHash = (tokenHash: string) => `session:${tokenHash}`;
const keyOf = (token: string) => keyOfHash(hashOf(token));

/** Whether a text has the shape of a session token; any other text needs no look-up in the store. */
export const isSessionToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

/**
 * The store leads from a token to its session. Whether that is alive is in the database, where no failover of the store
 * and no snapshot of it can bring back what has ended: the session has a row, and its epoch is the user's.
 */
export function createSessions({ store, users, rows, devices, outbox }: Parts) {
  const read = async (token: string): Promise<StoredSession | null> => {
    const stored = await store.get(keyOf(token));
    return stored === null ? null : (JSON.parse(stored) as StoredSession);
  };
  const save = (token: string, session: StoredSession, ifExists: boolean) =>
    store.set(keyOf(token), JSON.stringify(session), { ttlMs: session.expiresAt - Date.now(), ifExists });

  /** Deletes the keys of sessions. What opens nothing any more would otherwise stay until it expires. */
  const forget = async (sessions: { tokenHash?: string | null | undefined }[]): Promise<void> => {
    const hashes = sessions.flatMap(({ tokenHash }) => tokenHash ?? []);
    await Promise.all(hashes.map((tokenHash) => store.delete(keyOfHash(tokenHash))));
  };

  /** Deletes the keys of a user's sessions after `end`, which ends all of them. */
  const endingAll = async <Ended>(userId: string, end: () => Promise<Ended>): Promise<Ended> => {
    const open = await rows.someOf(userId);
    const ended = await end();
    await forget(open).catch(() => undefined);
    return ended;
  };

  /** Ends a session by its token, which takes the store to find it. A row that is gone ends it, whatever becomes of its key. */
  const end = async (token: string, caller: Caller): Promise<void> => {
    const session = await read(token);
    if (session === null) return;
    if (session.id !== undefined) await rows.logOut({ id: session.id, userId: session.userId }, caller);
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
     * The one way to open a session, whatever the credential; logins come here by `login-steps.ts`. It ends the session that the request carried and makes a
     * new token, so that a token that an attacker has planted in the browser never becomes the user's (session fixation:
     * OWASP ASVS 7.2.4). `user` must have been read before the credential was checked: if all sessions are ended
     * meanwhile, say by a reset of the password, the epoch that was read makes this one void too. UNAUTHENTICATED where
     * the identity or passkey that was the credential was removed meanwhile.
     */
    async openSession(user: Account, credential: Credential, request: LoginRequest): Promise<Login> {
      const { method, ageMs, secondFactor } = credential;
      const { clientAddress, userAgent, formerToken } = request;
      if (formerToken !== undefined) await end(formerToken, request);
      const [id, token, createdAt] = [uuidv7(), newToken(), Date.now()];
      const expiresAt = createdAt + SESSION_LIFE_MS;
      // The row comes last: a crash before it leaves a key that opens nothing, and no row that nobody can use.
      await save(token, { id, userId: user.id, epoch: user.sessionEpoch, createdAt, expiresAt }, false);
      const address = clientAddress.slice(0, LONGEST_ADDRESS);
      const device = await deviceOf(userAgent);
      const login = { method, address, device };
      const recorded = await rows.insert(
        user,
        { id, tokenHash: hashOf(token), ...login, ageMs, lifeMs: SESSION_LIFE_MS },
        (tables) => devices.recordLogin(tables, user, { ...login, secondFactor }, request),
        credential,
      );
      if (!recorded) throw new ServiceError('UNAUTHENTICATED');
      if (recorded.isNews) outbox.wake();
      return { user, token, expiresAt, deviceCookie: recorded.deviceCookie };
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

    /**
     * Deletes all that is left of the sessions of a user who is being removed: first the keys, which the rows lead to. May be
     * repeated. Rejects when the store is out of reach.
     */
    async forgetAll(userId: string): Promise<void> {
      for (;;) {
        const found = await rows.someOf(userId);
        if (found.length === 0) return;
        await forget(found);
        await rows.remove(found.map(({ id }) => id));
      }
    },

    /**
     * Goes on with a session under a new token and a new id, beside a change that raises the epoch of its user by one and
     * so ends all others. `change` is one transaction, which gives the row its `next` id. Until it is committed the new
     * token opens nothing, for want of the row; from then on the former one opens nothing, whatever the store does. Where
     * the process ends in between, the user logs in again. UNAUTHENTICATED for a session of the version before.
     */
    async goOn(
      { id, user, createdAt, expiresAt }: Session,
      formerToken: string,
      change: (next: NextSession) => Promise<void>,
    ): Promise<SessionCookie> {
      if (id === undefined) throw new ServiceError('UNAUTHENTICATED');
      const [next, token] = [uuidv7(), newToken()];
      await save(token, { id: next, userId: user.id, epoch: user.sessionEpoch + 1, createdAt, expiresAt }, false);
      const forgetToken = (token: string) => store.delete(keyOf(token)).catch(() => undefined);
      try {
        await change({ id, next, tokenHash: hashOf(token) });
      } catch (error) {
        await forgetToken(token);
        throw error;
      }
      await forgetToken(formerToken);
      return { token, expiresAt };
    },

    end,
    list: rows.list,

    /** Ends a session of the user by its id. Answers whether there was one. */
    async endOf(user: Account, id: string, caller: Caller): Promise<boolean> {
      const ended = await rows.endOf(user, id, caller);
      if (ended) await forget([ended]).catch(() => undefined);
      return ended !== undefined;
    },

    endingAll,

    /** Ends every session of the user, at once on every instance. Answers whether the user exists. */
    endAll: (userId: string, caller: Caller): Promise<boolean> => endingAll(userId, () => rows.endAll(userId, caller)),

    isRecent: rows.isRecent,
    reauthenticate: rows.reauthenticate,
  };
}

export type Sessions = ReturnType<typeof createSessions>;

function renewedExpiry({ createdAt, expiresAt }: StoredSession, now: number): number {
  const isInSecondHalf = expiresAt - now < SESSION_LIFE_MS / 2;
  return isInSecondHalf ? Math.min(now + SESSION_LIFE_MS, createdAt + SESSION_CAP_MS) : expiresAt;
}
