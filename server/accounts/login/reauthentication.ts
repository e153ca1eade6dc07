import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { Deps } from './deps.ts';
import { PASSWORD, RECOVERY } from './login-methods.ts';
import { wrongPasskey } from './passkey-login.ts';
import type { PasswordCheck } from './password-check.ts';
import { type FactorRequest, type GivenFactor, type SecondFactors, secondFactorRequired } from './second-factors.ts';
import type { Session } from './sessions.ts';

/** What users read who are logged in already, and gave no address. */
export const wrongPassword = { message: 'The password is wrong' };

/** What the user gives again: exactly one. */
export type GivenAgain = Pick<GivenFactor, 'code' | 'passkey'> & { password?: string | undefined };

interface Rules {
  checkPassword: PasswordCheck;
  secondFactors: SecondFactors;
}

/** The user of a session gives a credential again: sensitive changes demand it (`recentProcedure`). */
export const createReauthentication = (
  { sessions }: Pick<Deps, 'sessions'>,
  { checkPassword, secondFactors }: Rules,
) => {
  /** Where there is an app, the password alone has opened no session either. */
  const checkPasswordIn = async (session: Session, password: string, caller: Caller) => {
    const factors = await secondFactors.factorsOf(session.user);
    if (factors.length > 0) throw secondFactorRequired(factors.filter((factor) => factor !== RECOVERY));
    const given = { email: session.user.email, password };
    const { user } = await checkPassword(given, { ...caller, session }, wrongPassword);
    return { user, method: PASSWORD };
  };

  const checkFactor = async (session: Session, given: GivenFactor, request: FactorRequest) => {
    const method = await secondFactors.use(session.user, given, { ...request, session });
    if (!method) throw new ServiceError('INVALID_CODE', given.passkey && wrongPasskey);
    return { user: session.user, method };
  };

  return {
    /**
     * By password (SECOND_FACTOR_REQUIRED where there is an authenticator app), by a code of the app, or by a passkey. Rejects as
     * a login and its second step do; UNAUTHENTICATED if the session has ended meanwhile, or is of the release before.
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
