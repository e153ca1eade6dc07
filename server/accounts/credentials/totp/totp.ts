import { Totp, type User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import { type AllTables, type EntityManager, nowOf, sql } from '../parts/database/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { Secrets } from '../secrets.ts';
import type { Deps } from './deps.ts';
import { hasOnlyProvenMethods, removeMethods, TOTP } from './login-methods.ts';
import { renewCodes } from './recovery-codes.ts';
import type { OwnSession, Session, SessionCookie } from './sessions.ts';
import { changeAsOwner, endOtherSessions, type NextSession } from './sessions-of-user.ts';
import { newTotpSetup, stepOf, type TotpSetup } from './totp-codes.ts';
import type { Account } from './users.ts';

/** How long a secret that was shown waits for its first code. */
const SETUP_LIFE_MS = 10 * 60_000;

/** What users see of their authenticator app. `enabledAt` in milliseconds since 1970; undefined without an app. */
export interface TotpStatus {
  enabledAt: number | undefined;
  recoveryCodesLeft: number;
}

interface Parts {
  store: KeyValueStore;
  secrets: Secrets;
  log: Log;
  /** What the app calls the service. */
  issuer: string;
}

/** The key of the setup of a session. One of the version before, without an id, is never recent. */
function setupKeyOf({ id }: Session): string {
  if (id === undefined) throw new ServiceError('UNAUTHENTICATED');
  return `totp-setup:${id}`;
}

/** Removes app and recovery codes of a user whose row is locked. Answers whether there was an app. */
export const removeApp = async (em: EntityManager, user: User): Promise<boolean> =>
  (await removeMethods(em, user, { password: false, added: ({ method }) => method === TOTP })).length > 0;

/** The authenticator app of a user, with whose codes a login is completed, and the recovery codes in their place. */
export const createTotp = (
  { database, outbox, record, sessions }: Pick<Deps, 'database' | 'outbox' | 'record' | 'sessions'>,
  { store, secrets, log, issuer }: Parts,
) => {
  /** Undefined where the secret cannot be read: then codes are refused, and a recovery code or an administrator helps. */
  const opened = (userId: string, sealed: string) => {
    const secret = secrets.open('totp', userId, sealed);
    if (!secret)
      log.error({ userId }, 'the secret of an authenticator app cannot be read: its part of APP_SECRET is gone');
    return secret;
  };

  /**
   * What an attacker has added to an account is removed as soon as its owner acts, and with it would go an app that the owner
   * could not pass; an app of the owner's would go with the owner's own unproven password. Neither is set up.
   */
  const demandProof = async (em: EntityManager, user: User): Promise<void> => {
    if (await hasOnlyProvenMethods(em, user)) return;
    const message = 'Please set a new password by a mailed link first: your email was confirmed in another browser';
    throw new ServiceError('FORBIDDEN', { message, details: { account: { message, rule: 'unproven' } } });
  };

  const noApp = () => new ServiceError('NOT_FOUND', { message: 'There is no authenticator app' });

  return {
    async totpStatus({ id }: Account): Promise<TotpStatus> {
      const row = await database.query((tables) =>
        tables
          .selectFrom('totps')
          .select((totp) => [
            'created_at as enabledAt',
            totp
              .selectFrom('recovery_codes')
              .select(({ fn }) => fn.countAll<number>().as('left'))
              .whereRef('recovery_codes.user_id', '=', 'totps.user_id')
              .where('used_at', 'is', null)
              .as('left'),
          ])
          .where('user_id', '=', id)
          .executeTakeFirst(),
      );
      return { enabledAt: row && Number(row.enabledAt), recoveryCodesLeft: Number(row?.left ?? 0) };
    },

    /** Makes a secret, which waits in this session for its first code; a former one that waits is void. */
    async beginTotp(session: Session): Promise<TotpSetup> {
      const { id, email } = session.user;
      await changeAsOwner({ database, outbox }, session, (em, _tables, user) => demandProof(em, user));
      const setup = await newTotpSetup({ issuer, label: email });
      const sealed = secrets.seal('totp', id, setup.secret);
      await store.set(setupKeyOf(session), sealed, { ttlMs: SETUP_LIFE_MS });
      return setup;
    },

    /**
     * Asks for the codes of the app from now on, in place of any former one. Answers the recovery codes. All other sessions end,
     * which no code was asked for, and so do logins that are under way; this session goes on under the token that is answered.
     * INVALID_CODE unless it is a code for the secret that waits in this session; FORBIDDEN as `beginTotp`.
     */
    async enableTotp(
      { session, token }: OwnSession,
      code: string,
      caller: Caller,
    ): Promise<{ login: SessionCookie; recoveryCodes: string[] }> {
      const [key, { id }] = [setupKeyOf(session), session.user];
      const sealed = await store.get(key);
      const secret = sealed === null ? undefined : opened(id, sealed);
      const lastStep =
        secret && (await stepOf(code, secret.text, await database.query((tables) => nowOf(database, tables))));
      // Taken by one of several calls at once, so that only one makes recovery codes.
      if (!secret || lastStep === undefined || (await store.take(key)) !== sealed)
        throw new ServiceError('INVALID_CODE');
      let recoveryCodes: string[] = [];
      const enable = async (em: EntityManager, tables: AllTables, user: User, ids: NextSession) => {
        await demandProof(em, user);
        user.endSessions();
        await em.flush();
        if (!(await endOtherSessions(tables, user, ids))) throw new ServiceError('UNAUTHENTICATED');
        await em.nativeDelete(Totp, { userId: id });
        await tables
          .insertInto('totps')
          .values({
            user_id: id,
            secret: secrets.seal('totp', id, secret.text),
            last_step: lastStep,
            created_at: sql<number>`${database.now}`,
          })
          .execute();
        await record(tables, user, { kind: 'totp-enabled' }, caller);
        recoveryCodes = await renewCodes(tables, database, id);
      };
      const login = await sessions.goOn(session, token, (ids) =>
        changeAsOwner({ database, outbox }, session, (em, tables, user) => enable(em, tables, user, ids)),
      );
      return { login, recoveryCodes };
    },

    /** Asks for codes no more. NOT_FOUND without an app. */
    disableTotp: (session: Session, caller: Caller): Promise<void> =>
      changeAsOwner({ database, outbox }, session, async (em, tables, user) => {
        if (!(await removeApp(em, user))) throw noApp();
        await record(tables, user, { kind: 'totp-disabled' }, caller);
      }),

    /** New recovery codes in place of the former ones. NOT_FOUND without an app. */
    renewRecoveryCodes: (session: Session, caller: Caller): Promise<string[]> =>
      changeAsOwner({ database, outbox }, session, async (em, tables, user) => {
        if ((await em.count(Totp, { userId: user.id })) === 0) throw noApp();
        await record(tables, user, { kind: 'recovery-codes-renewed' }, caller);
        return renewCodes(tables, database, user.id);
      }),

    /** Uses a code of the user's app: each is right once, also under a race. By the database's clock, as those of instances differ. */
    useAppCode: ({ id }: Account, code: string): Promise<boolean> =>
      database.change(async (tables) => {
        const row = await tables
          .selectFrom('totps')
          .select(['secret', sql<number>`${database.now}`.as('now')])
          .where('user_id', '=', id)
          .executeTakeFirst();
        const secret = row && opened(id, row.secret);
        const step = secret && (await stepOf(code, secret.text, Number(row.now)));
        if (!secret || step === undefined) return false;
        const { numUpdatedRows } = await tables
          .updateTable('totps')
          .set({ last_step: step, ...(!secret.isCurrent && { secret: secrets.seal('totp', id, secret.text) }) })
          .where('user_id', '=', id)
          // The app was not replaced meanwhile.
          .where('secret', '=', row.secret)
          .where('last_step', '<', step)
          .executeTakeFirst();
        return numUpdatedRows === 1n;
      }, id),
  };
};

export type AuthenticatorApp = ReturnType<typeof createTotp>;
