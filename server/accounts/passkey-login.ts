import { ServiceError } from '../errors.ts';
import type { Deps } from './deps.ts';
import { PASSKEY } from './login-methods.ts';
import { type LoginRefusals, refuseBlocked } from './login-refusals.ts';
import type { Entry, LoginSteps } from './login-steps.ts';
import type { Asked, PasskeyAssertions } from './passkey-assertions.ts';
import type { LoginRequest } from './sessions.ts';
import type { AssertionResponse, RequestOptions } from './webauthn.ts';

interface Rules {
  assertions: PasskeyAssertions;
  recordRefusal: LoginRefusals;
  enter: LoginSteps['enter'];
}

/** What users read whose passkey is none of the service, or of another user. */
export const wrongPasskey = { message: 'This passkey was not accepted' };

/** Login by passkey: as the authenticator has verified the user, it is both factors. */
export const createPasskeyLogin = ({ limits }: Pick<Deps, 'limits'>, { assertions, recordRefusal, enter }: Rules) => ({
  /** With a user for the second step of that user's login, or to give a credential again. */
  async beginPasskey(asked: Asked, clientAddress: string): Promise<RequestOptions> {
    await limits.enforce('passkeyStart', clientAddress);
    return assertions.begin(asked);
  },

  /**
   * Opens a session in place of the one that the request carried. Rejects with INVALID_CREDENTIALS, and with ACCOUNT_BLOCKED
   * and ACCOUNT_DELETED only where the passkey is right.
   */
  async logInByPasskey(response: AssertionResponse, browser: string, request: LoginRequest): Promise<Entry> {
    await limits.enforce('login', request.clientAddress);
    const assertion = await assertions.check(response, { purpose: 'login', browser });
    if (assertion.result === 'cloned') recordRefusal(assertion.user.email, 'cloned-passkey', request);
    if (assertion.result !== 'accepted') throw new ServiceError('INVALID_CREDENTIALS', wrongPasskey);
    const { user, isDeleted, isBlocked, passkeyId } = assertion;
    if (isBlocked) refuseBlocked(recordRefusal, user.email, request);
    if (isDeleted) {
      recordRefusal(user.email, 'deleted', request);
      throw new ServiceError('ACCOUNT_DELETED');
    }
    return enter(user, { method: PASSKEY, passkeyId }, { restores: false, isEnough: true }, request);
  },
});
