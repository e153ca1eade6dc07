import { z } from 'zod';
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { hashOf, newToken } from '../../lib/random-token.ts';
import { refundUndecided } from '../../limits/index.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { LoginMethod } from '../../shared/method-names.ts';
import type { Credential, Login, LoginRequest, Sessions } from '../sessions/index.ts';
import type { Account, Users } from '../users/index.ts';
import { counted } from './count.ts';
import { type LoginRefusals, refuseBlocked } from './refusals.ts';
import {
  type FactorRequest,
  factorOf,
  type GivenFactor,
  type SecondFactor,
  type SecondFactors,
} from './second-factors.ts';

export const PENDING_LIFE_MS = 10 * 60_000;
/** The last attempt deletes the pending login. */
const MAX_ATTEMPTS = 5;

/** A login that still needs a second factor. */
interface PendingLogin {
  /** The value of the browser's cookie. */
  token: string;
  /** The second factors that can complete it. */
  factors: SecondFactor[];
}

type LoginOutcome =
  | { result: 'logged-in'; login: Login }
  | { result: 'second-factor'; pending: PendingLogin }
  /** `isOver`: that was the last attempt. */
  | { result: 'wrong-code'; isOver: boolean };

/** The outcome of a right credential. */
export type Entry = Exclude<LoginOutcome, { result: 'wrong-code' }>;

interface Use {
  /** Whether to restore a deleted account. */
  restores: boolean;
  /** True if the credential is two factors by itself, or the user has no app. */
  skipSecondFactor?: boolean;
}

const storedLogin = z.object({
  userId: z.string(),
  /** The user's session epoch before the credential check. */
  epoch: z.number(),
  /** Without its age: the second factor, given later, ends the login. */
  credential: z.object({
    method: z.custom<LoginMethod>((value) => typeof value === 'string'),
    identityId: z.string().exactOptional(),
    passkeyId: z.string().exactOptional(),
    isBreached: z.boolean().exactOptional(),
  }) satisfies z.ZodType<Credential>,
  restores: z.boolean(),
});
type StoredLogin = z.infer<typeof storedLogin>;

/** Restores the account of a user who has logged in after requesting deletion. */
export type RestoreAccount = (user: Account, caller: Caller) => Promise<Account>;

interface Rules {
  sessions: Pick<Sessions, 'openSession'>;
  users: Pick<Users, 'findStored'>;
  restoreAccount: RestoreAccount;
  secondFactors: SecondFactors;
  recordRefusal: LoginRefusals;
  store: KeyValueStore;
}

const keyOf = (token: string) => `pending-login:${hashOf(token)}`;

const noLogin = () => new ServiceError('UNAUTHENTICATED');

/**
 * The two steps of every login. A right credential opens a session if the user has no authenticator app. Otherwise the
 * login waits for a second factor in the same browser.
 */
export const createLoginSteps = ({ sessions, users, secondFactors, recordRefusal, restoreAccount, store }: Rules) => {
  const attempts = store.counter({
    name: 'pending-login-attempts',
    points: MAX_ATTEMPTS - 1,
    seconds: PENDING_LIFE_MS / 1000,
  });

  const complete = async (user: Account, credential: Credential, restores: boolean, request: LoginRequest) => {
    try {
      return await sessions.openSession(restores ? await restoreAccount(user, request) : user, credential, request);
    } catch (error) {
      // Blocked since the credential check.
      if (error instanceof ServiceError && error.code === 'ACCOUNT_BLOCKED')
        recordRefusal(user.email, 'blocked', request);
      throw error;
    }
  };

  /**
   * A pending login and its user. A raised epoch invalidates it, as it does sessions: UNAUTHENTICATED, or
   * ACCOUNT_BLOCKED if the user was blocked since.
   */
  const find = async (
    token: string | undefined,
    request: Caller,
  ): Promise<{ key: string; login: StoredLogin; user: Account }> => {
    const key = keyOf(token ?? '');
    const login = token === undefined ? null : await store.get(key, storedLogin);
    if (login === null) throw noLogin();
    const found = await users.findStored(login.userId);
    // A block raises the epoch by one. So nothing else has invalidated the first credential.
    if (found?.isBlocked && found.user.sessionEpoch === login.epoch + 1) {
      refuseBlocked(recordRefusal, found.user.email, request);
    }
    if (found?.user.sessionEpoch !== login.epoch) throw noLogin();
    return { key, login, user: found.user };
  };

  const giveFactor = async (
    token: string | undefined,
    given: GivenFactor,
    request: LoginRequest & FactorRequest,
  ): Promise<Exclude<LoginOutcome, { result: 'second-factor' }>> => {
    const { key, login, user } = await find(token, request);
    const take = async () => {
      if ((await store.take(key, storedLogin)) === null) throw noLogin();
    };
    const attempt = await attempts(key);
    const isLast = !attempt.allowed;
    if (isLast) await take();
    const secondFactor = await secondFactors.use(user, given, request).catch(refundUndecided(attempt.refund));
    if (!secondFactor) return { result: 'wrong-code', isOver: isLast };
    if (!isLast) await take();
    const opened = complete(user, { ...login.credential, secondFactor }, login.restores, request);
    return { result: 'logged-in', login: await opened.catch(unauthenticatedIfVoid) };
  };

  return {
    /** The user of a pending login. UNAUTHENTICATED; ACCOUNT_BLOCKED. */
    findPendingUser: async (token: string | undefined, request: Caller): Promise<Account> =>
      (await find(token, request)).user,

    /**
     * The only way from a credential to a session. `user` must be read before the credential check. Every pending login
     * gets a new token, so a planted one never becomes the user's (session fixation).
     */
    async completeFirstFactor(
      user: Account,
      credential: Credential,
      { restores, skipSecondFactor = false }: Use,
      request: LoginRequest,
    ): Promise<Entry> {
      const factors = skipSecondFactor ? [] : await secondFactors.factorsOf(user);
      if (factors.length === 0) {
        return { result: 'logged-in', login: await complete(user, credential, restores, request) };
      }
      const token = newToken();
      const { ageMs: _, ...withoutAge } = credential;
      const stored: StoredLogin = { userId: user.id, epoch: user.sessionEpoch, credential: withoutAge, restores };
      await store.set(keyOf(token), stored, { ttlMs: PENDING_LIFE_MS });
      return { result: 'second-factor', pending: { token, factors } };
    },

    /**
     * The second step: opens the session; of concurrent calls, one succeeds. UNAUTHENTICATED without a pending login,
     * ACCOUNT_BLOCKED if the user was blocked since, RATE_LIMITED past the limit of codes.
     */
    giveSecondFactor: (token: string | undefined, given: GivenFactor, request: LoginRequest & FactorRequest) =>
      counted(factorOf(given), giveFactor(token, given, request)),
  };
};

export type LoginSteps = ReturnType<typeof createLoginSteps>;

/** The account was deleted, or all its sessions ended, since the pending login was read. */
export function unauthenticatedIfVoid(error: unknown): never {
  throw error instanceof ServiceError && error.code === 'INVALID_CREDENTIALS' ? noLogin() : error;
}
