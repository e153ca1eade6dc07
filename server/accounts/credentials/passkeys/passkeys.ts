import { validate as isUuid, v7 as uuidv7 } from 'uuid';
import { Passkey } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { columnsOf, isDuplicate } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import { hasOnlyProvenMethods, hasWayIn, PASSKEY } from './login-methods.ts';
import { descriptorsOf } from './passkey-assertions.ts';
import type { ChallengeScope, PasskeyChallenges } from './passkey-challenges.ts';
import { nameOfAuthenticator } from './passkey-names.ts';
import type { Session } from './sessions.ts';
import { changeAsOwner, deleteSessionsThrough } from './sessions-of-user.ts';
import {
  type CreationOptions,
  challengeIn,
  type NewPasskey,
  type RegistrationResponse,
  type WebAuthn,
} from './webauthn.ts';

/** The most passkeys of a user. */
const MOST_PASSKEYS = 10;
/** The column's length. */
const LONGEST_PUBLIC_KEY = 2048;

/** What users see of a passkey. Times in milliseconds since 1970. */
const listedFields = ['id', 'name', 'createdAt', 'lastUsedAt'] as const;
export type ListedPasskey = Pick<Passkey, (typeof listedFields)[number]>;

interface Parts {
  challenges: PasskeyChallenges;
  webauthn: WebAuthn;
  /** The names of the identity providers that there are. */
  providers: readonly string[];
}

/** The answer of a browser to the options of `beginPasskeyRegistration`, and the user's own name for the passkey. */
interface Registration {
  response: RegistrationResponse;
  name: string | undefined;
  /** The id of the browser. */
  browser: string;
}

const invalid = (rule: string, message: string) =>
  new ServiceError('VALIDATION_FAILED', { message, details: { passkey: { message, rule } } });
const refused = () => invalid('refused', 'This passkey was not accepted, please try again');
const tooMany = () => invalid('too_many', `You have ${MOST_PASSKEYS} passkeys: remove one first`);
const noSuchPasskey = () => new ServiceError('NOT_FOUND', { message: 'You have no such passkey' });

/** The column is ASCII: MySQL refuses to compare it with anything else. */
const requireId = (id: string): void => {
  if (!isUuid(id)) throw noSuchPasskey();
};

/** The passkeys of the user of a session: added, listed, named and removed. */
export const createPasskeys = (deps: Deps, { challenges, webauthn, providers }: Parts) => {
  const { database, limits, record } = deps;

  const scopeOf = ({ id }: Session, browser: string): ChallengeScope => ({
    purpose: 'registration',
    browser,
    sessionId: id,
  });

  const add = (session: Session, made: NewPasskey, { response, name }: Registration, caller: Caller) =>
    changeAsOwner(deps, session, async (em, tables, user) => {
      if ((await em.count(Passkey, { userId: user.id })) >= MOST_PASSKEYS) throw tooMany();
      const passkey = em.create(Passkey, {
        ...made,
        id: uuidv7(),
        userId: user.id,
        transports: (response.response.transports ?? []).join(','),
        name: name ?? nameOfAuthenticator(made.aaguid),
        proven: await hasOnlyProvenMethods(em, user),
        createdAt: Date.now(),
        lastUsedAt: null,
      });
      await em.persist(passkey).flush();
      await record(tables, user, { kind: 'passkey-added', details: { name: passkey.name } }, caller);
      return passkey;
    });

  return {
    /** The oldest first. */
    listPasskeys: (userId: string): Promise<ListedPasskey[]> =>
      database.query((tables) =>
        tables
          .selectFrom('passkeys')
          .select(columnsOf(listedFields))
          .where('user_id', '=', userId)
          .orderBy('id')
          .execute(),
      ),

    /** The options for the browser's `navigator.credentials.create`. */
    async beginPasskeyRegistration(
      session: Session,
      browser: string,
      { clientAddress }: Caller,
    ): Promise<CreationOptions> {
      await limits.enforce('passkeyStart', clientAddress);
      const { user } = session;
      const existing = await database.query((tables) => descriptorsOf(tables, user.id));
      if (existing.length >= MOST_PASSKEYS) throw tooMany();
      return webauthn.creationOptions(user, await challenges.open(scopeOf(session, browser)), existing);
    },

    /**
     * Adds what the browser has made from the options that it got in this session. Rejects with VALIDATION_FAILED, whatever
     * is wrong with it, and with UNAUTHENTICATED if the session has ended meanwhile.
     */
    async finishPasskeyRegistration(
      session: Session,
      registration: Registration,
      caller: Caller,
    ): Promise<ListedPasskey> {
      const { response, browser } = registration;
      const challenge = challengeIn(response);
      if (!challenge || !(await challenges.take(challenge, scopeOf(session, browser)))) throw refused();
      const made = await webauthn.verifyRegistration(response, challenge);
      if (!made || made.publicKey.length > LONGEST_PUBLIC_KEY) throw refused();
      return add(session, made, registration, caller).catch((error: unknown) => {
        // The credential is registered already, maybe by another user.
        throw isDuplicate(error) ? refused() : error;
      });
    },

    /** Rejects with NOT_FOUND. */
    async renamePasskey(userId: string, id: string, name: string): Promise<void> {
      requireId(id);
      const { numUpdatedRows } = await database.write(
        (tables) =>
          tables
            .updateTable('passkeys')
            .set({ name })
            .where('id', '=', id)
            .where('user_id', '=', userId)
            .executeTakeFirst(),
        id,
      );
      if (numUpdatedRows !== 1n) throw noSuchPasskey();
    },

    /**
     * Removes a passkey of the session's user, and ends the sessions that were opened by one, but for this session. Rejects
     * with NOT_FOUND, and with LAST_LOGIN_METHOD if no user could log in to the account any more.
     */
    removePasskey: (session: Session, id: string, caller: Caller): Promise<void> =>
      changeAsOwner(deps, session, async (em, tables, user) => {
        requireId(id);
        const passkey = await em.findOne(Passkey, { id, userId: user.id });
        if (!passkey) throw noSuchPasskey();
        // Before its sessions end: a login through it that is being stored holds its row, and has a session after that.
        await em.remove(passkey).flush();
        if (!(await hasWayIn(em, user, providers))) throw new ServiceError('LAST_LOGIN_METHOD');
        await deleteSessionsThrough(tables, { userId: user.id, method: PASSKEY, but: session.id });
        await record(tables, user, { kind: 'passkey-removed', details: { name: passkey.name } }, caller);
      }),
  };
};

export type Passkeys = ReturnType<typeof createPasskeys>;
