import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import type { OwnMethod } from '../../shared/method-names.ts';
import { PASSWORD, RECOVERY } from '../credentials/index.ts';
import type { Session, Sessions } from '../sessions/index.ts';
import type { Account } from '../users/index.ts';
import { wrongPasskey } from './passkey.ts';
import type { PasswordCheck } from './password-check.ts';
import { type FactorRequest, type GivenFactor, type SecondFactors, secondFactorRequired } from './second-factors.ts';

/** The message in a session, where the user has not given an address. */
export const wrongPassword = { message: 'The password is wrong' };

/** The credential given again: exactly one. */
type GivenAgain = Pick<GivenFactor, 'code' | 'passkey'> & { password?: string | undefined };

interface Rules {
  sessions: Pick<Sessions, 'reauthenticate'>;
  checkPassword: PasswordCheck;
  secondFactors: SecondFactors;
}

/** Reauthentication in a session, required before sensitive changes (`recentProcedure`). */
export const createReauthentication = ({ sessions, checkPassword, secondFactors }: Rules) => {
  const renew = async ({ id }: Session, user: Account, method: OwnMethod, request: Caller): Promise<void> => {
    const isAlive = id !== undefined && (await sessions.reauthenticate(id, user, method, request));
    if (!isAlive) throw new ServiceError('UNAUTHENTICATED');
  };

  /** With an authenticator app, a password alone does not log in, so it is not enough here either. */
  const givePassword = async (session: Session, password: string, caller: Caller): Promise<void> => {
    const factors = await secondFactors.factorsOf(session.user);
    if (factors.length > 0) throw secondFactorRequired(factors.filter((factor) => factor !== RECOVERY));
    const credential = { email: session.user.email, password };
    const request = { ...caller, session };
    await checkPassword(credential, request, ({ user }) => renew(session, user, PASSWORD, caller), wrongPassword);
  };

  const giveFactor = async (session: Session, given: GivenFactor, request: FactorRequest): Promise<void> => {
    const method = await secondFactors.use(session.user, given, { ...request, session });
    if (!method) throw new ServiceError('INVALID_CODE', given.passkey && wrongPasskey);
    await renew(session, session.user, method, request);
  };

  return {
    /**
     * By password (SECOND_FACTOR_REQUIRED with an authenticator app), app code or passkey. Rejects as the steps of a
     * login do. UNAUTHENTICATED if the session has ended since, or is of the previous release.
     */
    reauthenticate: (session: Session, { password, ...factor }: GivenAgain, request: FactorRequest): Promise<void> =>
      password === undefined ? giveFactor(session, factor, request) : givePassword(session, password, request),
  };
};
