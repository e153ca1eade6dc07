import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { PASSWORD, RECOVERY } from '../credentials/index.ts';
import type { Session, Sessions } from '../sessions/index.ts';
import { wrongPasskey } from './passkey.ts';
import type { PasswordCheck } from './password-check.ts';
import { type FactorRequest, type GivenFactor, type SecondFactors, secondFactorRequired } from './second-factors.ts';

/** The message in a session, where the user has not given an address. */
export const wrongPassword = { message: 'The password is wrong' };

/** The credential given again: exactly one. */
export type GivenAgain = Pick<GivenFactor, 'code' | 'passkey'> & { password?: string | undefined };

interface Rules {
  sessions: Pick<Sessions, 'reauthenticate'>;
  checkPassword: PasswordCheck;
  secondFactors: SecondFactors;
}

/** Reauthentication in a session, required before sensitive changes (`recentProcedure`). */
export const createReauthentication = ({ sessions, checkPassword, secondFactors }: Rules) => {
  /** With an authenticator app, a password alone does not log in, so it is not enough here either. */
  const checkPasswordIn = async (session: Session, password: string, caller: Caller) => {
    const factors = await secondFactors.factorsOf(session.user);
    if (factors.length > 0) throw secondFactorRequired(factors.filter((factor) => factor !== RECOVERY));
    const credential = { email: session.user.email, password };
    const { user } = await checkPassword(credential, { ...caller, session }, wrongPassword);
    return { user, method: PASSWORD };
  };

  const checkFactor = async (session: Session, given: GivenFactor, request: FactorRequest) => {
    const method = await secondFactors.use(session.user, given, { ...request, session });
    if (!method) throw new ServiceError('INVALID_CODE', given.passkey && wrongPasskey);
    return { user: session.user, method };
  };

  return {
    /**
     * By password (SECOND_FACTOR_REQUIRED with an authenticator app), app code or passkey. Rejects as the steps of a
     * login do. UNAUTHENTICATED if the session has ended since, or is of the previous release.
     */
    async reauthenticate(session: Session, { password, ...factor }: GivenAgain, request: FactorRequest): Promise<void> {
      const { id } = session;
      const { user, method } = await (password === undefined
        ? checkFactor(session, factor, request)
        : checkPasswordIn(session, password, request));
      const isAlive = id !== undefined && (await sessions.reauthenticate(id, user, method, request));
      if (!isAlive) throw new ServiceError('UNAUTHENTICATED');
    },
  };
};
