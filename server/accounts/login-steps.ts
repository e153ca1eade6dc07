import { hash, randomBytes } from 'node:crypto';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { AccountDeletion } from './deletion.ts';
import type { Deps } from './deps.ts';
import { type LoginRefusals, refuseBlocked } from './login-refusals.ts';
import type { FactorRequest, GivenFactor, SecondFactor, SecondFactors } from './second-factors.ts';
import type { Credential, Login, LoginRequest } from './sessions.ts';
import type { Account } from './users.ts';

export const PENDING_LIFE_MS = 10 * 60_000;
/** The last of them takes the pending login with it. */
const MOST_ATTEMPTS = 5;

/** A login whose second factor is still to be given. */
export interface PendingLogin {
  /** For the cookie of the browser. */
  token: string;
  /** What it can be completed with. */
  factors: SecondFactor[];
}

export type LoginOutcome =
  | { result: 'logged-in'; login: Login }
  | { result: 'second-factor'; pending: PendingLogin }
  /** `isOver`: it was the last attempt. */
  | { result: 'wrong-code'; isOver: boolean };

/** What comes of a credential that is right. */
export type Entry = Exclude<LoginOutcome, { result: 'wrong-code' }>;

/** How a credential is used. */
interface Use {
  /** Whether a deleted account is restored. */
  restores: boolean;
  /** Whether no second factor is asked for: the credential proves two by itself, or the user is known to have no app. */
  isEnough?: boolean;
}

interface StoredLogin {
  userId: string;
  /** The user's session epoch before the credential was checked. */
  epoch: number;
  credential: Credential;
  restores: boolean;
}

interface Rules extends Pick<AccountDeletion, 'restoreAccount'> {
  secondFactors: SecondFactors;
  recordRefusal: LoginRefusals;
  store: KeyValueStore;
}

/** Whether a text has the shape of the cookie's token. */
export const isPendingToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

/** The store has only the hash of a token, so that a leaked store completes no login. */
const keyOf = (token: string) => `pending-login:${hash('sha256', token, 'base64url')}`;

const noLogin = () => new ServiceError('UNAUTHENTICATED');

/**
 * The two steps of every login. A right credential opens a session where the user has no authenticator app; otherwise the login
 * waits for a second factor, in the browser that began it.
 */
export const createLoginSteps = (
  { sessions, users }: Pick<Deps, 'sessions' | 'users'>,
  { secondFactors, recordRefusal, restoreAccount, store }: Rules,
) => {
  const attempts = store.counter({
    name: 'pending-login-attempts',
    points: MOST_ATTEMPTS - 1,
    seconds: PENDING_LIFE_MS / 1000,
  });

  const complete = async (user: Account, credential: Credential, restores: boolean, request: LoginRequest) => {
    try {
      return await sessions.openSession(restores ? await restoreAccount(user, request) : user, credential, request);
    } catch (error) {
      // Since the credential was checked.
      if (error instanceof ServiceError && error.code === 'ACCOUNT_BLOCKED')
        recordRefusal(user.email, 'blocked', request);
      throw error;
    }
  };

  /**
   * A pending login and its user. All of them are void once the epoch is raised, as sessions are: UNAUTHENTICATED, or
   * ACCOUNT_BLOCKED if the user was blocked since.
   */
  const find = async (
    token: string | undefined,
    request: Caller,
  ): Promise<{ key: string; login: StoredLogin; user: Account }> => {
    const key = keyOf(token ?? '');
    const stored = token === undefined ? null : await store.get(key);
    if (stored === null) throw noLogin();
    const login = JSON.parse(stored) as StoredLogin;
    const found = await users.findStored(login.userId);
    // A block raises the epoch by one: nothing else has made the first credential void.
    if (found?.isBlocked && found.user.sessionEpoch === login.epoch + 1) {
      refuseBlocked(recordRefusal, found.user.email, request);
    }
    if (found?.user.sessionEpoch !== login.epoch) throw noLogin();
    return { key, login, user: found.user };
  };

  return {
    /** Whose login waits. Rejects with UNAUTHENTICATED, and with ACCOUNT_BLOCKED. */
    findPendingUser: async (token: string | undefined, request: Caller): Promise<Account> =>
      (await find(token, request)).user,

    /**
     * The one way from a credential to a session. `user` must have been read before the credential was checked. Every pending
     * login has a new token: one that was planted in the browser never becomes the user's (session fixation).
     */
    async enter(
      user: Account,
      credential: Credential,
      { restores, isEnough = false }: Use,
      request: LoginRequest,
    ): Promise<Entry> {
      const factors = isEnough ? [] : await secondFactors.factorsOf(user);
      if (factors.length === 0) {
        return { result: 'logged-in', login: await complete(user, credential, restores, request) };
      }
      const token = randomBytes(32).toString('base64url');
      const { ageMs: _, ...kept } = credential;
      const stored: StoredLogin = { userId: user.id, epoch: user.sessionEpoch, credential: kept, restores };
      await store.set(keyOf(token), JSON.stringify(stored), { ttlMs: PENDING_LIFE_MS });
      return { result: 'second-factor', pending: { token, factors } };
    },

    /**
     * The second step: opens the session, of a login that is taken by one of several calls at once. UNAUTHENTICATED without a
     * pending login, ACCOUNT_BLOCKED if the user was blocked since it began, RATE_LIMITED past the limit of codes.
     */
    async giveSecondFactor(
      token: string | undefined,
      given: GivenFactor,
      request: LoginRequest & FactorRequest,
    ): Promise<Exclude<LoginOutcome, { result: 'second-factor' }>> {
      const { key, login, user } = await find(token, request);
      const take = async () => {
        if ((await store.take(key)) === null) throw noLogin();
      };
      const isLast = !(await attempts(key)).allowed;
      if (isLast) await take();
      const secondFactor = await secondFactors.use(user, given, request);
      if (!secondFactor) return { result: 'wrong-code', isOver: isLast };
      if (!isLast) await take();
      const opened = complete(user, { ...login.credential, secondFactor }, login.restores, request);
      return { result: 'logged-in', login: await opened.catch(unauthenticatedIfVoid) };
    },
  };
};

export type LoginSteps = ReturnType<typeof createLoginSteps>;

/** The account was deleted, or all of its sessions were ended, since the pending login was read. */
function unauthenticatedIfVoid(error: unknown): never {
  throw error instanceof ServiceError && error.code === 'INVALID_CREDENTIALS' ? noLogin() : error;
}
