import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { sql } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import type { KnownDevices } from './known-devices.ts';
import { untilUnlocked } from './limits.ts';
import { PASSKEY, RECOVERY, TOTP } from './login-methods.ts';
import type { LoginRefusals, RefusalReason } from './login-refusals.ts';
import type { Assertion, PasskeyAssertions } from './passkey-assertions.ts';
import { createRecoveryCodeUse } from './recovery-codes.ts';
import type { Session } from './sessions.ts';
import type { AuthenticatorApp } from './totp.ts';
import type { Account } from './users.ts';
import type { AssertionResponse } from './webauthn.ts';

/** What a login is completed with where the user has an authenticator app. */
export const secondFactorKinds = [TOTP, RECOVERY, PASSKEY] as const;
export type SecondFactor = (typeof secondFactorKinds)[number];

/** What users give, by its name in the calls: exactly one. */
export interface GivenFactor {
  code?: string | undefined;
  recoveryCode?: string | undefined;
  /** The answer to a challenge that was made for this user and this browser. */
  passkey?: AssertionResponse | undefined;
}

/** The request in which it is given. */
export interface FactorRequest extends Caller {
  /** The id of the browser. */
  browser: string;
  deviceCookie?: string | undefined;
  /** The session in which it is given again. */
  session?: Session;
}

interface Parts {
  app: Pick<AuthenticatorApp, 'useAppCode'>;
  assertions: PasskeyAssertions;
  devices: Pick<KnownDevices, 'knownBy'>;
  recordRefusal: LoginRefusals;
}

const passkeyRefusals: Record<Assertion['result'], RefusalReason | undefined> = {
  accepted: undefined,
  refused: 'wrong-passkey',
  cloned: 'cloned-passkey',
};

/** The refusal of what takes a second factor, with what can be given. */
export const secondFactorRequired = (factors: readonly SecondFactor[]): ServiceError =>
  new ServiceError('SECOND_FACTOR_REQUIRED', {
    details: { methods: { message: factors.join(','), rule: 'second_factor' } },
  });

/** Which second factor was given. */
export function factorOf({ recoveryCode, passkey }: GivenFactor): SecondFactor {
  if (recoveryCode !== undefined) return RECOVERY;
  return passkey === undefined ? TOTP : PASSKEY;
}

/** The second factors of users. Refused ones are recorded behind the answer. */
export const createSecondFactors = (deps: Deps, { app, assertions, devices, recordRefusal }: Parts) => {
  const { database, limits, users } = deps;
  const useRecoveryCode = createRecoveryCodeUse(deps);

  /**
   * A code of the app has few digits, so that attempts are counted, before they are checked, per user; those of a session or a
   * device that the account knows by themselves: whoever has the password shuts its owner out of neither.
   */
  const isRightCode = async (user: Account, code: string, request: FactorRequest): Promise<boolean> => {
    const found = await users.findCredential(user.email);
    const known = devices.knownBy(found, request);
    const key = known === undefined ? user.id : `${user.id}:${known}`;
    const giveBack = await limits.enforce('code', untilUnlocked(key, found));
    const isRight = await app.useAppCode(user, code);
    if (isRight) await giveBack();
    return isRight;
  };

  /** Why it is refused, or undefined where it is right, and used up. */
  const refusalOf = async (
    user: Account,
    { code, recoveryCode, passkey }: GivenFactor,
    request: FactorRequest,
  ): Promise<RefusalReason | undefined> => {
    if (passkey !== undefined) {
      // A session is there to be confirmed; without one a login waits.
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
    /** The second factors that can complete a login of the user; none where a login needs none. */
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

    /** Uses what was given. Answers which it was, or undefined if it is refused. RATE_LIMITED past the limit of codes. */
    async use(user: Account, given: GivenFactor, request: FactorRequest): Promise<SecondFactor | undefined> {
      const refusal = await refusalOf(user, given, request).catch((error: unknown) => {
        if (error instanceof ServiceError && error.code === 'RATE_LIMITED')
          recordRefusal(user.email, 'limited', request);
        throw error;
      });
      if (refusal === undefined) return factorOf(given);
      recordRefusal(user.email, refusal, request);
      return undefined;
    },
  };
};

export type SecondFactors = ReturnType<typeof createSecondFactors>;
