import { z } from 'zod';
import { Totp, User } from '../../../../entities/index.ts';
import type { Caller } from '../../../activity/caller.ts';
import { ServiceError } from '../../../errors.ts';
import type { Limits } from '../../../limits/index.ts';
import { type AllTables, type Database, type EntityManager, nowOf, sql } from '../../../parts/database/contract.ts';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';
import type { Secrets } from '../../../secrets.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Outbox, RecordEvent } from '../../mail/index.ts';
import {
  changeAsOwner,
  type DeviceRequest,
  endOtherSessions,
  type KnownDevices,
  type NextSession,
  type OwnSession,
  type RotatedSession,
  type Session,
  type Sessions,
} from '../../sessions/index.ts';
import type { Account, LockedUser } from '../../users/index.ts';
import { hasOnlyProvenMethods, removeMethods, TOTP } from '../login-methods.ts';
import { newTotpSetup, stepOf, type TotpSetup } from './codes.ts';
import { renewCodes } from './recovery-codes.ts';

/** How long a displayed secret waits for its first code. */
const SETUP_LIFE_MS = 10 * 60_000;

/** The encrypted secret. */
const storedSetup = z.object({ sealed: z.string() });

/** The state of a user's authenticator app. `enabledAt` in milliseconds since 1970; undefined without an app. */
interface TotpStatus {
  enabledAt: number | undefined;
  recoveryCodesLeft: number;
}

interface Parts {
  database: Database;
  limits: Pick<Limits, 'enforce'>;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  sessions: Sessions;
  devices: Pick<KnownDevices, 'keep'>;
  store: KeyValueStore;
  secrets: Secrets;
  log: Log;
  /** The name of the service in the app. */
  issuer: string;
}

/** The key of a session's setup. A session without a row has no id and is never recent. */
function setupKeyOf({ id }: Session): string {
  if (id === undefined) throw new ServiceError('UNAUTHENTICATED');
  return `totp-setup:${id}`;
}

/** Removes the app and recovery codes. Resolves to whether there was an app. */
export const removeApp = async (em: EntityManager, user: LockedUser): Promise<boolean> =>
  (await removeMethods(em, user, { password: false, added: ({ method }) => method === TOTP })).removed.length > 0;

/** The authenticator app of a user and its recovery codes. */
export const createTotp = ({
  database,
  devices,
  limits,
  outbox,
  record,
  sessions,
  store,
  secrets,
  log,
  issuer,
}: Parts) => {
  /** Undefined if the secret cannot be decrypted. Then codes are refused; a recovery code or an administrator helps. */
  const opened = (userId: string, sealed: string) => {
    const secret = secrets.open('totp', userId, sealed);
    if (!secret)
      log.error({ userId }, 'the secret of an authenticator app cannot be decrypted: its APP_SECRET was removed');
    return secret;
  };

  /**
   * Requires only proven login methods: an attacker's app would lock the owner out, and the owner's app would be
   * removed along with unproven methods.
   */
  const demandProof = async (em: EntityManager, user: User): Promise<void> => {
    if (await hasOnlyProvenMethods(em, user)) return;
    const message = 'Please reset your password first: your email was confirmed in another browser';
    throw new ServiceError('FORBIDDEN', { message, details: { account: { message, rule: 'unproven' } } });
  };

  const noApp = () => new ServiceError('NOT_FOUND', { message: 'No authenticator app is set up' });

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

    /**
     * Creates a secret that waits in this session for its first code and replaces an earlier one. Locks nothing:
     * `enableTotp` checks again. FORBIDDEN with an unproven login method, RATE_LIMITED past the limit.
     */
    async beginTotp(session: Session): Promise<TotpSetup> {
      const { id, email } = session.user;
      await limits.enforce('totpStart', id);
      await database.transaction(async (em) => {
        const user = await em.findOne(User, { id });
        if (!user) throw new ServiceError('UNAUTHENTICATED');
        await demandProof(em, user);
      });
      const setup = await newTotpSetup({ issuer, label: email });
      const sealed = secrets.seal('totp', id, setup.secret);
      await store.set(setupKeyOf(session), { sealed }, { ttlMs: SETUP_LIFE_MS });
      return setup;
    },

    /**
     * Enables the app, replacing a former one, and resolves to the recovery codes. Ends all other sessions and pending
     * logins, rotates this session, and forgets other devices. INVALID_CODE; FORBIDDEN as `beginTotp`.
     */
    async enableTotp(
      { session, token }: OwnSession,
      code: string,
      caller: DeviceRequest,
    ): Promise<{ login: RotatedSession; recoveryCodes: string[] }> {
      const [key, { id }] = [setupKeyOf(session), session.user];
      const setup = await store.get(key, storedSetup);
      const secret = setup === null ? undefined : opened(id, setup.sealed);
      const lastStep =
        secret && (await stepOf(code, secret.text, await database.query((tables) => nowOf(database, tables))));
      // Of concurrent calls one takes the setup, so that only one creates recovery codes.
      if (!secret || lastStep === undefined || (await store.take(key, storedSetup))?.sealed !== setup?.sealed)
        throw new ServiceError('INVALID_CODE');
      let recoveryCodes: string[] = [];
      const enable = async (em: EntityManager, tables: AllTables, user: LockedUser, ids: NextSession) => {
        await demandProof(em, user);
        const keptDevice = devices.keep(caller.deviceCookie, user);
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
        recoveryCodes = await renewCodes(tables, database, user);
        return keptDevice();
      };
      const login = await sessions.rotate(session, token, (ids) =>
        changeAsOwner({ database, outbox }, session, (em, tables, user) => enable(em, tables, user, ids)),
      );
      return { login, recoveryCodes };
    },

    /** Removes the app. NOT_FOUND without one. */
    disableTotp: (session: Session, caller: Caller): Promise<void> =>
      changeAsOwner({ database, outbox }, session, async (em, tables, user) => {
        if (!(await removeApp(em, user))) throw noApp();
        await record(tables, user, { kind: 'totp-disabled' }, caller);
      }),

    /** Replaces the recovery codes. NOT_FOUND without an app. */
    renewRecoveryCodes: (session: Session, caller: Caller): Promise<string[]> =>
      changeAsOwner({ database, outbox }, session, async (em, tables, user) => {
        if ((await em.count(Totp, { userId: user.id })) === 0) throw noApp();
        await record(tables, user, { kind: 'recovery-codes-renewed' }, caller);
        return renewCodes(tables, database, user);
      }),

    /**
     * Uses an app code: each works once, also under a race. By the database clock, because instances' clocks differ.
     */
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
          // The app was not replaced since.
          .where('secret', '=', row.secret)
          .where('last_step', '<', step)
          .executeTakeFirst();
        return numUpdatedRows === 1n;
      }, id),
  };
};

export type AuthenticatorApp = ReturnType<typeof createTotp>;
