import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import type { Limits } from '../../limits/index.ts';
import { type Database, sql } from '../../parts/database/contract.ts';
import type { OwnMethod } from '../../shared/method-names.ts';
import {
  type Assertion,
  type AssertionResponse,
  type AuthenticatorApp,
  PASSKEY,
  type PasskeyAssertions,
  RECOVERY,
  type RecoveryCodeUse,
  TOTP,
} from '../credentials/index.ts';
import type { KnownDevices, Session } from '../sessions/index.ts';
import type { Account, Users } from '../users/index.ts';
import { knownKey, untilUnlocked } from './attempts.ts';
import type { LoginRefusals, RefusalReason } from './refusals.ts';

/** The second factors that complete a login of a user with an authenticator app. */
export const secondFactorKinds = [TOTP, RECOVERY, PASSKEY] as const satisfies readonly OwnMethod[];
export type SecondFactor = (typeof secondFactorKinds)[number];

/** The given factor, by its name in the calls: exactly one. */
export interface GivenFactor {
  code?: string | undefined;
  recoveryCode?: string | undefined;
  /** The response to a challenge issued to this user and browser. */
  passkey?: AssertionResponse | undefined;
}

/** The request that contains the factor. */
export type FactorRequest = Caller & {
  /** The id of the browser. */
  browser: string;
  deviceCookie?: string | undefined;
  /** The session, for reauthentication. */
  session?: Session;
};

interface Parts {
  database: Database;
  limits: Limits;
  users: Pick<Users, 'findCredential'>;
  app: Pick<AuthenticatorApp, 'useAppCode'>;
  useRecoveryCode: RecoveryCodeUse;
  assertions: PasskeyAssertions;
  devices: Pick<KnownDevices, 'knownBy'>;
  recordRefusal: LoginRefusals;
}

const passkeyRefusals: Record<Assertion['result'], RefusalReason | undefined> = {
  accepted: undefined,
  refused: 'wrong-passkey',
  unknown: 'wrong-passkey',
  cloned: 'cloned-passkey',
};

/** The refusal of a login that needs a second factor. Lists the accepted ones. */
export const secondFactorRequired = (factors: readonly SecondFactor[]): ServiceError =>
  new ServiceError('SECOND_FACTOR_REQUIRED', {
    details: { methods: { message: factors.join(','), rule: 'second_factor' } },
  });

export function factorOf({ recoveryCode, passkey }: GivenFactor): SecondFactor {
  if (recoveryCode !== undefined) return RECOVERY;
  return passkey === undefined ? TOTP : PASSKEY;
}

/** The second factors of users. Refusals are recorded after the response. */
export const createSecondFactors = (parts: Parts) => {
  const { database, limits, users, app, assertions, devices, recordRefusal, useRecoveryCode } = parts;

  /**
   * App codes are short, so attempts are counted per user before the check. Each session and known device has a counter
   * of its own, besides a shared one: a thief with the password locks the owner out of neither.
   */
  const isRightCode = async (user: Account, code: string, request: FactorRequest): Promise<boolean> => {
    const found = await users.findCredential(user.email);
    const known = devices.knownBy(found, request);
    const key = found && known !== undefined ? knownKey(found, known) : untilUnlocked(user.id, found);
    const check = async (refund: () => Promise<void>) => {
      const isRight = await app.useAppCode(user, code);
      if (isRight) await refund();
      return isRight;
    };
    return limits.attempt('code', key, check, () => recordRefusal(user.email, 'limited', request));
  };

  /** The reason of a refusal; undefined for a right factor, which is then used up. */
  const refusalOf = async (
    user: Account,
    { code, recoveryCode, passkey }: GivenFactor,
    request: FactorRequest,
  ): Promise<RefusalReason | undefined> => {
    if (passkey !== undefined) {
      // With a session it is a reauthentication; without one, a pending login.
      const purpose = request.session ? 'reauthenticate' : 'second-factor';
      const { result } = await assertions.check(passkey, { purpose, browser: request.browser, userId: user.id });
      return passkeyRefusals[result];
    }
    const isRight = await (recoveryCode === undefined
      ? isRightCode(user, code ?? '', request)
      : useRecoveryCode(user, recoveryCode, request));
    return isRight ? undefined : 'wrong-code';
  };

  return {
    /** The second factors that can complete the user's login; empty if it needs none. */
    async factorsOf({ id }: Pick<Account, 'id'>): Promise<SecondFactor[]> {
      const row = await database.query((tables) =>
        tables
          .selectFrom('totps')
          .select((totp) => [
            totp
              .exists(
                totp
                  .selectFrom('recovery_codes')
                  .select(sql`1`.as('one'))
                  .whereRef('recovery_codes.user_id', '=', 'totps.user_id')
                  .where('used_at', 'is', null),
              )
              .as('hasCodes'),
            totp
              .exists(
                totp.selectFrom('passkeys').select(sql`1`.as('one')).whereRef('passkeys.user_id', '=', 'totps.user_id'),
              )
              .as('hasPasskey'),
          ])
          .where('user_id', '=', id)
          .executeTakeFirst(),
      );
      if (!row) return [];
      const factors: SecondFactor[] = [TOTP];
      if (row.hasCodes) factors.push(RECOVERY);
      if (row.hasPasskey) factors.push(PASSKEY);
      return factors;
    },

    /** Uses the given factor. Resolves to its kind, or undefined if refused. RATE_LIMITED past the limit of codes. */
    async use(user: Account, given: GivenFactor, request: FactorRequest): Promise<SecondFactor | undefined> {
      const refusal = await refusalOf(user, given, request);
      if (refusal === undefined) return factorOf(given);
      recordRefusal(user.email, refusal, request);
      return undefined;
    },
  };
};

export type SecondFactors = ReturnType<typeof createSecondFactors>;
