/**
 * Login by a code that is mailed to an address, in the browser that asked for it. The request looks for no account: it
 * writes down the mail, and a worker finds out whom the code is for. A right code proves the inbox, so it does what a
 * verified link does in this browser, and removes all other unproven login methods as a password reset does. An address
 * without an account gets one, if registration allows it. The second factor is still required.
 */
import { z } from 'zod';
import { User } from '../../../entities/index.ts';
import { ServiceError } from '../../errors.ts';
import { hashOf, newToken } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import {
  type AllTables,
  type Database,
  type EntityManager,
  retryOnDuplicate,
  rowOf,
} from '../../parts/database/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import { EMAIL_CODE, proveMethodsOf, removeUnprovenMethods } from '../credentials/index.ts';
import {
  counted,
  type Entry,
  knownKey,
  type Login,
  PENDING_LIFE_MS,
  refuseBlocked,
  unauthenticatedIfVoid,
  untilUnlocked,
} from '../login/index.ts';
import {
  type EmailChangeRows,
  type EmailCodes,
  entryFor,
  type InvitationRows,
  type MailedCode,
  type OneTimeTokens,
  type Outbox,
  type RecordEvent,
} from '../mail/index.ts';
import type { KnownDevices, LoginRequest } from '../sessions/index.ts';
import {
  type Account,
  accountOf,
  type Consents,
  claimUser,
  type LockedUser,
  lockUser,
  nameFromAddress,
  type RegistrationPolicy,
  storeNameWords,
  type Users,
} from '../users/index.ts';

/** The last guess deletes the pending code. */
const MAX_GUESSES = 5;

const storedCode = z.object({
  /** The id of the mail. */
  mailId: z.string(),
  email: z.string(),
});

interface Needs {
  codes: EmailCodes;
  consents: Pick<Consents, 'removeSince'>;
  database: Database;
  devices: Pick<KnownDevices, 'knownBy' | 'mark'>;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
  limits: Limits;
  login: Pick<Login, 'steps' | 'recordRefusal'>;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  registration: RegistrationPolicy;
  store: KeyValueStore;
  tokens: OneTimeTokens;
  users: Pick<Users, 'findCredential'>;
}

/** The login of a browser; `browser` is its id. */
type CodeRequest = LoginRequest & {
  browser: string;
};

/** `isOver`: that was the last guess. */
type CodeOutcome = (Entry & Pick<Admitted, 'invitedTo'>) | { result: 'wrong-code'; isOver: boolean };

interface Scope {
  em: EntityManager;
  tables: AllTables;
  request: CodeRequest;
}

/** The user of a right code. No mail reports the first login in the browser that registered, as after a verified link. */
interface Admitted {
  account: Account;
  deviceCookie: string | undefined;
  /** The target of the invitation that admitted a new user. */
  invitedTo?: string | null | undefined;
}

const keyOf = (token: string) => `email-code:${hashOf(token)}`;

const noCode = () => new ServiceError('UNAUTHENTICATED');

export const createEmailCodeLogin = (needs: Needs) => {
  const { codes, database, devices, limits, login, outbox, record, store, tokens, users } = needs;
  const { recordRefusal } = login;
  const guesses = store.counter({
    name: 'email-code-guesses',
    points: MAX_GUESSES - 1,
    seconds: PENDING_LIFE_MS / 1000,
  });

  /** Creates the account of a proven address. */
  const createAccount = async ({ tables, request }: Scope, email: string, mailed: MailedCode): Promise<Admitted> => {
    const name = nameFromAddress(email);
    const user = User.register({ name, email, passwordHash: null, browserLanguage: request.language() });
    user.verifyEmail();
    const entry = await entryFor(needs, tables, user);
    if (!entry) throw new ServiceError('REGISTRATION_CLOSED');
    await codes.giveTo(tables, mailed, user.id);
    await tables.insertInto('users').values(rowOf('users', user)).execute();
    await storeNameWords(tables, [user]);
    // After the insert, which waits for a concurrent change that gives the address up.
    if (await needs.emailChanges.isReserved(tables, email, user.id)) throw new ServiceError('EMAIL_TAKEN');
    const { returnTo: invitedTo, ...invited } = entry;
    await record(tables, user, { kind: 'registered', details: { method: EMAIL_CODE, ...invited } }, request);
    await record(tables, user, { kind: 'verified' }, request);
    return { account: accountOf(user), deviceCookie: devices.mark(request.deviceCookie, user), invitedTo };
  };

  /** UNAUTHENTICATED if everything was ended since the code was mailed; ACCOUNT_BLOCKED; ACCOUNT_DELETED. */
  const requireCurrent = (user: LockedUser, { userId, epoch }: MailedCode, request: CodeRequest): void => {
    const isSame = userId === null || userId === user.id;
    // A block raises the epoch by one. So nothing else has invalidated the code.
    const isBlockedSince = user.isBlocked && user.sessionEpoch - 1 === epoch;
    if (!isSame || (user.sessionEpoch !== epoch && !isBlockedSince)) throw noCode();
    if (user.isBlocked) refuseBlocked(recordRefusal, user.email, request);
    if (!user.isDeleted) return;
    recordRefusal(user.email, 'deleted', request);
    throw new ServiceError('ACCOUNT_DELETED');
  };

  /** The owner of the inbox has acted in this browser. */
  const admitOwner = async ({ em, tables, request }: Scope, user: LockedUser): Promise<Admitted> => {
    const { hasProven } = await proveMethodsOf(em, user, hashOf(request.browser));
    await em.flush();
    await removeUnprovenMethods(needs, { em, tables, user, caller: request });
    if (!user.emailVerified) {
      await tokens.revoke(tables, user, 'verify-email');
      if (hasProven) user.verifyEmail();
      else await claimUser(needs, { tables, user, name: nameFromAddress(user.email), caller: request });
      await record(tables, user, { kind: 'verified' }, request);
    }
    const deviceCookie = hasProven ? devices.mark(request.deviceCookie, user) : request.deviceCookie;
    return { account: accountOf(user), deviceCookie };
  };

  const admit = (email: string, mailed: MailedCode, request: CodeRequest): Promise<Admitted> =>
    retryOnDuplicate(() =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { email });
        if (user) {
          requireCurrent(user, mailed, request);
          return admitOwner({ em, tables, request }, user);
        }
        // The account was removed, or has another address now.
        if (mailed.userId !== null) throw noCode();
        return createAccount({ em, tables, request }, email, mailed);
      }, email),
    );

  /** Counts a guess at the codes of an address, with or without an account, before it is looked at. */
  const countGuess = async (email: string, request: CodeRequest): Promise<() => Promise<void>> => {
    const found = await users.findCredential(email);
    const known = devices.knownBy(found, request);
    const key = found && known !== undefined ? knownKey(found, known) : untilUnlocked(hashOf(email), found);
    return limits.enforce('code', key).catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'RATE_LIMITED') recordRefusal(email, 'limited', request);
      throw error;
    });
  };

  const giveCode = async (token: string | undefined, code: string, request: CodeRequest): Promise<CodeOutcome> => {
    const key = keyOf(token ?? '');
    const pending = token === undefined ? null : await store.get(key, storedCode);
    if (!pending) throw noCode();
    const { email, mailId } = pending;
    const take = async () => {
      if ((await store.take(key, storedCode)) === null) throw noCode();
    };
    const mailed = await database.query((tables) => codes.find(tables, mailId));
    const isLast = !(await guesses(key)).allowed;
    if (isLast) await take();
    const refund = await countGuess(email, request);
    if (!mailed?.isRight(code)) {
      recordRefusal(email, 'wrong-code', request);
      return { result: 'wrong-code', isOver: isLast };
    }
    if (mailed.userId === null) await limits.enforce('register', request.clientAddress);
    if (!isLast) await take();
    await refund();
    const { account, deviceCookie, invitedTo } = await admit(email, mailed, request);
    outbox.wake();
    const opening = { ...request, deviceCookie };
    const entry = await login.steps
      .completeFirstFactor(account, { method: EMAIL_CODE }, { restores: false }, opening)
      .catch(unauthenticatedIfVoid);
    return { ...entry, invitedTo };
  };

  return {
    /**
     * Requests a mail with a code. Resolves to the token for the cookie of the browser that must give it. The code of
     * `formerToken` ends. The work is the same for every address.
     */
    async begin(email: string, formerToken: string | undefined, request: LoginRequest): Promise<string> {
      await limits.enforce('mailRequest', request.clientAddress);
      const { id, detail } = codes.prepare();
      const token = newToken();
      if (formerToken !== undefined) await store.delete(keyOf(formerToken));
      await store.set(keyOf(token), { mailId: id, email }, { ttlMs: PENDING_LIFE_MS });
      await outbox.request({ id, kind: 'email-code', email, detail }, request);
      return token;
    },

    /**
     * Takes the code of the browser's token, once. UNAUTHENTICATED without one; RATE_LIMITED; for a right code
     * ACCOUNT_BLOCKED, ACCOUNT_DELETED, REGISTRATION_CLOSED or EMAIL_TAKEN.
     */
    finish: (token: string | undefined, code: string, request: CodeRequest): Promise<CodeOutcome> =>
      counted(
        EMAIL_CODE,
        limits.attempt('login', request.clientAddress, () => giveCode(token, code, request)),
      ),
  };
};
