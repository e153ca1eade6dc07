/**
 * Sessions. The store maps a token to its session; the database decides whether that is valid: the session has a row,
 * and its epoch equals the user's. So neither a failover nor a snapshot of the store restores an ended session.
 * Opening a session ends the one of the request and issues a new token: a token planted by an attacker never becomes
 * the user's (session fixation, OWASP ASVS 7.2.4).
 * Rotation gives a session a new token and id while a change raises the user's epoch and so ends all others. Before the
 * commit the new token has no row and is invalid; after it the old token is invalid, whatever the store contains. If
 * the process ends in between, the user logs in again.
 */
import { v7 as uuidv7 } from 'uuid';
import { z } from 'zod';
import type { Caller } from '../../activity/caller.ts';
import { deviceOf } from '../../activity/devices.ts';
import type { DetailsOf } from '../../activity/kinds.ts';
import { ServiceError } from '../../errors.ts';
import { hashOf, newToken } from '../../lib/random-token.ts';
import type { AllTables } from '../../parts/database/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import { IMPERSONATION, type LoginMethod } from '../../shared/method-names.ts';
import { ignored } from '../../telemetry/background.ts';
import type { Outbox } from '../mail/index.ts';
import type { Account, LockedUser, Users } from '../users/index.ts';
import type { DeviceRequest, KnownDevices } from './known-devices.ts';
import type { NextSession } from './of-user.ts';
import type { SessionRows, StoredCredential } from './rows.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** interface.md section 8. Sliding: use in the second half of its life renews the session. */
const SESSION_LIFE_MS = 7 * DAY_MS;
/** A session ends this long after its login, however often it is used. */
const SESSION_CAP_MS = 30 * DAY_MS;
/** A session in which an administrator acts for a user is never renewed. */
const IMPERSONATION_LIFE_MS = 30 * 60_000;
/** At the full hour every session is due for recording. This limit leaves connections to requests. */
const MAX_RECORDED = 3;
/** The column's length. */
const MAX_ADDRESS = 64;

const storedSession = z.object({
  /**
   * The id of the row. Absent in sessions of an earlier version, which have no row and are valid by epoch alone. They
   * all end 30 days after the upgrade; the next release can require an id.
   */
  id: z.string().optional(),
  userId: z.string(),
  /** The user's session epoch at login. A higher epoch of the user ends this session. */
  epoch: z.number(),
  createdAt: z.number(),
  expiresAt: z.number(),
  /** The administrator who acts for the user, and the session that began it: this one ends with it. */
  actor: z.object({ id: z.string(), epoch: z.number(), sessionId: z.string(), tokenHash: z.string() }).exactOptional(),
  /** The login's password is breached. Not in the database: a leak would show which accounts have such passwords. */
  hasBreachedPassword: z.boolean().optional(),
});
type StoredSession = z.infer<typeof storedSession>;
type Actor = NonNullable<StoredSession['actor']>;

/**
 * The stored epoch of a session with an actor, and back. The previous release does not know actors: it reads the
 * session as ended, so that it neither serves nor renews it.
 */
const hiddenFromPreviousRelease = (epoch: number): number => -1 - epoch;

/** A valid session. `fresh`: its cookie must be set again. Times in milliseconds since 1970. */
export interface Session {
  /** Undefined for a session without a row, which no list contains. */
  id: string | undefined;
  user: Account;
  createdAt: number;
  expiresAt: number;
  fresh: boolean;
  /** The administrator who acts for the user. */
  actor?: { id: string };
  /** Whether its login was by a breached password. */
  hasBreachedPassword?: boolean;
}

/** The session in which a user acts, and its token. */
export interface OwnSession {
  session: Session;
  token: string;
}

/** A session with a new token. `deviceCookie` is undefined if the device was unknown. */
export type RotatedSession = Pick<Login, 'token' | 'expiresAt'> & { deviceCookie: string | undefined };

/** A new session. `expiresAt` in milliseconds since 1970. */
export interface Login {
  user: Account;
  token: string;
  expiresAt: number;
  /** The new device cookie. */
  deviceCookie: string;
}

export type LoginRequest = DeviceRequest & {
  /** The session token of the request. */
  formerToken: string | undefined;
};

/** The credential that opens a session. */
export interface Credential extends StoredCredential {
  method: LoginMethod;
  /** True for a breached password. */
  isBreached?: boolean;
  /** How long ago the user gave it, if a provider reports an earlier authentication. Default: 0. */
  ageMs?: number | undefined;
  /** The second factor, if the user has an authenticator app. */
  secondFactor?: DetailsOf<'logged-in'>['secondFactor'];
}

interface Parts {
  store: KeyValueStore;
  users: Pick<Users, 'find'>;
  rows: SessionRows;
  devices: Pick<KnownDevices, 'keep' | 'recordLogin'>;
  outbox: Pick<Outbox, 'wake'>;
  /** Whether administrators may act for users. */
  allowsImpersonation?: boolean;
}

const keyOfHash = (tokenHash: string) => `session:${tokenHash}`;
const keyOf = (token: string) => keyOfHash(hashOf(token));

/** Opens, validates, rotates and ends sessions. */
export function createSessionStore({ store, users, rows, devices, outbox, allowsImpersonation = false }: Parts) {
  const read = (token: string): Promise<StoredSession | null> => store.get(keyOf(token), storedSession);
  const save = (token: string, session: StoredSession, ifExists: boolean) =>
    store.set(keyOf(token), session, { ttlMs: session.expiresAt - Date.now(), ifExists });

  /** Deletes the keys of ended sessions, which would otherwise stay until they expire. */
  const forget = async (sessions: { tokenHash?: string | null | undefined }[]): Promise<void> => {
    const hashes = sessions.flatMap(({ tokenHash }) => tokenHash ?? []);
    await Promise.all(hashes.map((tokenHash) => store.delete(keyOfHash(tokenHash))));
  };

  /** Runs `end`, which ends all sessions of a user, and then deletes their keys. */
  const endingAll = async <Ended>(userId: string, end: () => Promise<Ended>): Promise<Ended> => {
    const open = await rows.someOf(userId);
    const ended = await end();
    await forget(open).catch(ignored('forget_sessions'));
    return ended;
  };

  /** Ends a session by its token; rejects if the store is unavailable. A deleted row ends it, even if the key stays. */
  const end = async (token: string, caller: Caller): Promise<void> => {
    const session = await read(token);
    if (session === null) return;
    if (session.id !== undefined)
      await rows.logOut({ id: session.id, userId: session.userId }, callerIn(session, caller));
    const { actor } = session;
    if (actor) await rows.logOut({ id: actor.sessionId, userId: actor.id }, caller);
    const deletion = store.delete(keyOf(token));
    await (session.id === undefined ? deletion : deletion.catch(ignored('forget_sessions')));
  };

  /** Stores a later expiry. `failed`: the store or database rejects writes; the session keeps its expiry. */
  const renew = async (token: string, session: StoredSession): Promise<'renewed' | 'ended' | 'failed'> => {
    const { id, expiresAt } = session;
    try {
      // The row first: it must not be swept while the store has the session.
      if (id !== undefined && !(await rows.recordUse(id, expiresAt - Date.now()))) return 'ended';
      // Only replaces an existing key: a session that was logged out in the meantime must not be restored.
      return (await save(token, session, true)) ? 'renewed' : 'ended';
    } catch (error) {
      if (error instanceof ServiceError) return 'failed';
      throw error;
    }
  };

  /** Whether the administrator may still act for users. All that ends the administrator's session ends this one. */
  const isActing = async ({ epoch, sessionId: id, tokenHash }: Actor): Promise<boolean> => {
    const actor = allowsImpersonation ? await rows.find({ id, tokenHash }) : undefined;
    return actor?.role === 'admin' && actor.emailVerified && actor.sessionEpoch === epoch;
  };

  const inRecord = new Set<string>();
  /** After the response, one at a time per session. The next use retries a failed or skipped record. */
  const recordUse = (id: string, lifeMs: number): void => {
    if (inRecord.has(id) || inRecord.size >= MAX_RECORDED) return;
    inRecord.add(id);
    rows
      .recordUse(id, lifeMs)
      .catch(ignored('record_session_use'))
      .finally(() => inRecord.delete(id));
  };

  return {
    /**
     * The only way to open a session; logins use it through login/steps.ts. `user` must be read before the credential
     * check. UNAUTHENTICATED if the identity or passkey was removed since.
     */
    async openSession(user: Account, credential: Credential, request: LoginRequest): Promise<Login> {
      const { method, ageMs, secondFactor, isBreached } = credential;
      const { clientAddress, userAgent, formerToken } = request;
      if (formerToken !== undefined) await end(formerToken, request);
      const [id, token, createdAt] = [uuidv7(), newToken(), Date.now()];
      const expiresAt = createdAt + SESSION_LIFE_MS;
      // The row last: a crash before it leaves only a key that opens nothing.
      await save(
        token,
        {
          id,
          userId: user.id,
          epoch: user.sessionEpoch,
          createdAt,
          expiresAt,
          ...(isBreached && { hasBreachedPassword: true }),
        },
        false,
      );
      const address = clientAddress.slice(0, MAX_ADDRESS);
      const device = await deviceOf(userAgent);
      const login = { method, address, device };
      const inserted = await rows.insert(
        user,
        { id, tokenHash: hashOf(token), ...login, ageMs, lifeMs: SESSION_LIFE_MS },
        (tables) => devices.recordLogin(tables, user, { ...login, secondFactor, session: id }, request),
        credential,
      );
      if (!inserted) throw new ServiceError('UNAUTHENTICATED');
      const { recorded, ended } = inserted;
      forget(ended).catch(ignored('forget_sessions'));
      if (recorded.isNews) outbox.wake();
      return { user, token, expiresAt, deviceCookie: recorded.deviceCookie };
    },

    /** One store lookup and one row read. Rejects if either is unavailable: an outage is not a logout. */
    async validate(token: string): Promise<Session | null> {
      const session = await read(token);
      const now = Date.now();
      if (session === null || session.expiresAt <= now) return null;
      const { id, createdAt, actor, hasBreachedPassword } = session;
      const user: (Account & { isUseDue?: number }) | undefined = await (id === undefined
        ? users.find(session.userId)
        : rows.find({ id, tokenHash: hashOf(token) }));
      if (user?.sessionEpoch !== (actor ? hiddenFromPreviousRelease(session.epoch) : session.epoch)) return null;
      if (actor && !(await isActing(actor))) return null;
      const marks = { ...(actor && { actor: { id: actor.id } }), ...(hasBreachedPassword && { hasBreachedPassword }) };

      const expiresAt = renewedExpiry(session, now);
      if (expiresAt > session.expiresAt) {
        const outcome = await renew(token, { ...session, expiresAt });
        if (outcome === 'ended') return null;
        if (outcome === 'renewed') return { id, user, createdAt, expiresAt, fresh: true, ...marks };
      } else if (user.isUseDue === 1 && id !== undefined) recordUse(id, expiresAt - now);
      return { id, user, createdAt, expiresAt: session.expiresAt, fresh: false, ...marks };
    },

    /**
     * Opens an impersonation session in the transaction of `tables`. No device becomes known; no credential counts as
     * given. Shortens the administrator's `own` session to the same life; call `retire` with its token after commit.
     */
    async impersonate(
      tables: AllTables,
      user: LockedUser,
      own: { id: string; user: Account; token: string },
    ): Promise<{ id: string; token: string; expiresAt: number }> {
      const [id, token, createdAt] = [uuidv7(), newToken(), Date.now()];
      const expiresAt = createdAt + IMPERSONATION_LIFE_MS;
      const { id: actorId, sessionEpoch: epoch } = own.user;
      const actor = { id: actorId, epoch, sessionId: own.id, tokenHash: hashOf(own.token) };
      const hiddenEpoch = hiddenFromPreviousRelease(user.sessionEpoch);
      const session = { id, userId: user.id, epoch: hiddenEpoch, createdAt, expiresAt, actor };
      await save(token, session, false);
      await rows.shorten(tables, own.id, IMPERSONATION_LIFE_MS);
      await rows.insertRow(tables, user, {
        id,
        tokenHash: hashOf(token),
        method: IMPERSONATION,
        // The user's list shows nothing of the administrator.
        address: '',
        device: '',
        ageMs: createdAt,
        lifeMs: IMPERSONATION_LIFE_MS,
      });
      return { id, token, expiresAt };
    },

    /** Voids the token but keeps its row, which the impersonation session needs. */
    retire: (token: string): Promise<unknown> => store.delete(keyOf(token)).catch(ignored('forget_sessions')),

    /**
     * Deletes the sessions of a user who is being removed: keys first, because only rows name them. Idempotent. Rejects
     * if the store is unavailable.
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
     * Rotates a session. `change` is one transaction: it gives the row its `next` id and resolves to the device cookie
     * of a known device. UNAUTHENTICATED for a session without a row.
     */
    async rotate(
      { id, user, createdAt, expiresAt, hasBreachedPassword }: Session,
      formerToken: string,
      change: (next: NextSession) => Promise<string | undefined>,
    ): Promise<RotatedSession> {
      if (id === undefined) throw new ServiceError('UNAUTHENTICATED');
      const [next, token] = [uuidv7(), newToken()];
      const marks = hasBreachedPassword && { hasBreachedPassword };
      const epoch = user.sessionEpoch + 1;
      await save(token, { id: next, userId: user.id, epoch, createdAt, expiresAt, ...marks }, false);
      const forgetToken = (token: string) => store.delete(keyOf(token)).catch(ignored('forget_sessions'));
      const deviceCookie = await change({ id, next, tokenHash: hashOf(token) }).catch(async (error: unknown) => {
        await forgetToken(token);
        throw error;
      });
      await forgetToken(formerToken);
      return { token, expiresAt, deviceCookie };
    },

    end,
    list: rows.list,

    /** Ends a session of the user by its id. Resolves to whether it existed. */
    async endOf(user: Account, id: string, caller: Caller): Promise<boolean> {
      const ended = await rows.endOf(user, id, caller);
      if (ended) await forget([ended]).catch(ignored('forget_sessions'));
      return ended !== undefined;
    },

    endingAll,

    /**
     * Ends all sessions of the user, immediately on every instance, and forgets every device except the caller's.
     * Resolves to its cookie if it was known; undefined for an unknown user.
     */
    async endAll(
      userId: string,
      caller: Caller & Partial<DeviceRequest>,
    ): Promise<{ deviceCookie: string | undefined } | undefined> {
      let keptDevice: () => string | undefined = () => undefined;
      const ended = await endingAll(userId, () =>
        rows.endAll(userId, caller, (user) => {
          keptDevice = devices.keep(caller.deviceCookie, user);
        }),
      );
      return ended ? { deviceCookie: keptDevice() } : undefined;
    },

    isRecent: rows.isRecent,
    isFreshPasswordLogin: rows.isFreshPasswordLogin,
    authentication: rows.authentication,
    reauthenticate: rows.reauthenticate,
  };
}

export type SessionStore = ReturnType<typeof createSessionStore>;

/** In a session with an actor, the administrator acts, not the user. */
const callerIn = ({ actor }: Pick<StoredSession, 'actor'>, caller: Caller): Caller =>
  actor ? { ...caller, actor: 'administrator', actorId: actor.id, language: () => undefined } : caller;

function renewedExpiry({ createdAt, expiresAt, actor }: StoredSession, now: number): number {
  if (actor) return expiresAt;
  const isInSecondHalf = expiresAt - now < SESSION_LIFE_MS / 2;
  return isInSecondHalf ? Math.min(now + SESSION_LIFE_MS, createdAt + SESSION_CAP_MS) : expiresAt;
}
