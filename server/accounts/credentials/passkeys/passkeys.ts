import { validate as isUuid, v7 as uuidv7 } from 'uuid';
import { Passkey } from '../../../../entities/index.ts';
import type { Caller } from '../../../activity/caller.ts';
import { invalidField, ServiceError } from '../../../errors.ts';
import type { Limits } from '../../../limits/index.ts';
import { columnsOf, type Database, isDuplicate } from '../../../parts/database/contract.ts';
import type { ProviderName } from '../../../shared/method-names.ts';
import type { Outbox, RecordEvent } from '../../mail/index.ts';
import { changeAsOwner, deleteSessionsThrough, type Session, type Sessions } from '../../sessions/index.ts';
import { canLogIn, hasOnlyProvenMethods, PASSKEY } from '../login-methods.ts';
import { descriptorsOf } from './assertions.ts';
import type { ChallengeScope, PasskeyChallenges, RegistrationMode } from './challenges.ts';
import { nameOfAuthenticator } from './names.ts';
import {
  type CreationOptions,
  challengeIn,
  type NewPasskey,
  type RegistrationResponse,
  userHandleOf,
  type WebAuthn,
} from './webauthn.ts';

/** Maximum passkeys per user. */
const MAX_PASSKEYS = 10;
/** The column's length. */
const MAX_PUBLIC_KEY = 2048;

/** The public fields of a passkey. Times in milliseconds since 1970. */
const listedFields = ['id', 'credentialId', 'name', 'createdAt', 'lastUsedAt'] as const;
export type ListedPasskey = Pick<Passkey, (typeof listedFields)[number]>;

interface Parts {
  database: Database;
  limits: Limits;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  challenges: PasskeyChallenges;
  webauthn: WebAuthn;
  sessions: Pick<Sessions, 'isFreshPasswordLogin'>;
  /** The names of the configured identity providers. */
  providers: readonly ProviderName[];
}

/** The browser's response to the options of `beginPasskeyRegistration`, and the user's name for the passkey. */
interface Registration {
  response: RegistrationResponse;
  name: string | undefined;
  /** As in the request for the options. */
  mode: RegistrationMode;
  /** The id of the browser. */
  browser: string;
}

/** The owner of the passkeys, in the words of WebAuthn: for signals to the browser (Level 3, section 5.1.10). */
interface PasskeyOwner {
  rpId: string;
  /** In base64url. */
  userHandle: string;
}

const eventDetails = ({ name, id }: Pick<Passkey, 'name' | 'id'>) => ({ name, id });

const invalid = (rule: string, message: string) => invalidField('passkey', rule, message, { message });
const refused = () => invalid('refused', 'This passkey was not accepted, please try again');
const tooMany = () => invalid('too_many', `You already have ${MAX_PASSKEYS} passkeys. Remove one first`);
const noSuchPasskey = () => new ServiceError('NOT_FOUND', { message: 'Passkey not found' });

/** The column is ASCII, and MySQL rejects comparisons with other text. */
const requireId = (id: string): void => {
  if (!isUuid(id)) throw noSuchPasskey();
};

/** Adds, lists, renames and removes the passkeys of a session's user. */
export const createPasskeys = (parts: Parts) => {
  const { database, limits, record, challenges, webauthn, sessions, providers } = parts;

  const scopeOf = ({ id }: Session, purpose: RegistrationMode, browser: string): ChallengeScope => ({
    purpose,
    browser,
    sessionId: id,
  });

  const add = (session: Session, made: NewPasskey, { response, name }: Registration, caller: Caller) =>
    changeAsOwner(parts, session, async (em, tables, user) => {
      if ((await em.count(Passkey, { userId: user.id })) >= MAX_PASSKEYS) throw tooMany();
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
      await record(tables, user, { kind: 'passkey-added', details: eventDetails(passkey) }, caller);
      return passkey;
    });

  return {
    /** Oldest first. */
    listPasskeys: (userId: string): Promise<ListedPasskey[]> =>
      database.query((tables) =>
        tables
          .selectFrom('passkeys')
          .select(columnsOf(listedFields))
          .where('user_id', '=', userId)
          .orderBy('id')
          .execute(),
      ),

    ownerOf: (userId: string): PasskeyOwner => ({ rpId: webauthn.rpId, userHandle: userHandleOf(userId) }),

    /**
     * The options for the browser's `navigator.credentials.create`. An `upgrade` rejects with REAUTHENTICATION_REQUIRED
     * unless the session was opened by password in the last five minutes.
     */
    async beginPasskeyRegistration(
      session: Session,
      { mode, browser }: Pick<Registration, 'mode' | 'browser'>,
      { clientAddress }: Caller,
    ): Promise<CreationOptions> {
      const { id, user } = session;
      // Pages offer it after every login: only those that are possible count.
      if (mode === 'upgrade' && !(id !== undefined && (await sessions.isFreshPasswordLogin(id))))
        throw new ServiceError('REAUTHENTICATION_REQUIRED');
      await limits.enforce('passkeyStart', clientAddress);
      const existing = await database.query((tables) => descriptorsOf(tables, user.id));
      if (existing.length >= MAX_PASSKEYS) throw tooMany();
      const challenge = await challenges.open(scopeOf(session, mode, browser));
      return webauthn.creationOptions(user, { challenge, mode, existing });
    },

    /**
     * Adds the passkey created from the options issued to this session. VALIDATION_FAILED for any invalid response;
     * UNAUTHENTICATED if the session has ended since.
     */
    async finishPasskeyRegistration(
      session: Session,
      registration: Registration,
      caller: Caller,
    ): Promise<ListedPasskey> {
      const { response, mode, browser } = registration;
      const challenge = challengeIn(response);
      if (!challenge || !(await challenges.take(challenge, scopeOf(session, mode, browser)))) throw refused();
      const made = await webauthn.verifyRegistration(response, { challenge, mode });
      if (!made || made.publicKey.length > MAX_PUBLIC_KEY) throw refused();
      return add(session, made, registration, caller).catch((error: unknown) => {
        // The credential is already registered, maybe by another user.
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
     * Removes a passkey of the session's user and ends all other sessions opened by passkey. NOT_FOUND;
     * LAST_LOGIN_METHOD if nobody could log in any more.
     */
    removePasskey: (session: Session, id: string, caller: Caller): Promise<void> =>
      changeAsOwner(parts, session, async (em, tables, user) => {
        requireId(id);
        const passkey = await em.findOne(Passkey, { id, userId: user.id });
        if (!passkey) throw noSuchPasskey();
        // Before its sessions end: a concurrent login by this passkey holds its row, and has its session afterwards.
        await em.remove(passkey).flush();
        if (!(await canLogIn(em, user, providers))) throw new ServiceError('LAST_LOGIN_METHOD');
        await deleteSessionsThrough(tables, user, { method: PASSKEY, but: session.id });
        await record(tables, user, { kind: 'passkey-removed', details: eventDetails(passkey) }, caller);
      }),
  };
};

export type Passkeys = ReturnType<typeof createPasskeys>;
