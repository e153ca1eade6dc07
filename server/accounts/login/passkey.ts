import { ServiceError } from '../../errors.ts';
import type { Limits } from '../../limits/index.ts';
import {
  type Asked,
  type AssertionResponse,
  PASSKEY,
  type PasskeyAssertions,
  type RequestOptions,
} from '../credentials/index.ts';
import type { LoginRequest } from '../sessions/index.ts';
import { counted } from './count.ts';
import { type LoginRefusals, refuseBlocked } from './refusals.ts';
import type { Entry, LoginSteps } from './steps.ts';

interface Rules {
  limits: Limits;
  assertions: PasskeyAssertions;
  recordRefusal: LoginRefusals;
  completeFirstFactor: LoginSteps['completeFirstFactor'];
}

/** Message for an unknown passkey, or another user's. */
export const wrongPasskey = { message: 'This passkey was not accepted' };
/** Lets the page tell the browser to offer it no more. Credential ids are long random numbers: nobody can guess one. */
const unknownPasskey = { ...wrongPasskey, details: { passkey: { ...wrongPasskey, rule: 'unknown' } } };

/** Login by passkey. The authenticator has verified the user, so a passkey is two factors. */
export const createPasskeyLogin = ({ limits, assertions, recordRefusal, completeFirstFactor }: Rules) => {
  const givePasskey = async (response: AssertionResponse, browser: string, request: LoginRequest): Promise<Entry> => {
    const assertion = await assertions.check(response, { purpose: 'login', browser });
    if (assertion.result === 'cloned') recordRefusal(assertion.user.email, 'cloned-passkey', request);
    if (assertion.result === 'unknown') throw new ServiceError('INVALID_CREDENTIALS', unknownPasskey);
    if (assertion.result !== 'accepted') throw new ServiceError('INVALID_CREDENTIALS', wrongPasskey);
    const { user, isDeleted, isBlocked, passkeyId } = assertion;
    if (isBlocked) refuseBlocked(recordRefusal, user.email, request);
    if (isDeleted) {
      recordRefusal(user.email, 'deleted', request);
      throw new ServiceError('ACCOUNT_DELETED');
    }
    return completeFirstFactor(
      user,
      { method: PASSKEY, passkeyId },
      { restores: false, skipSecondFactor: true },
      request,
    );
  };

  return {
    /** With a user: for the second step of that user's login, or for reauthentication. */
    async beginPasskey(asked: Asked, clientAddress: string): Promise<RequestOptions> {
      await limits.enforce('passkeyStart', clientAddress);
      return assertions.begin(asked);
    },

    /**
     * Opens a session and ends the request's. INVALID_CREDENTIALS; ACCOUNT_BLOCKED and ACCOUNT_DELETED only for a valid
     * passkey.
     */
    logIn: (response: AssertionResponse, browser: string, request: LoginRequest) =>
      counted(
        PASSKEY,
        limits.attempt('login', request.clientAddress, () => givePasskey(response, browser, request)),
      ),
  };
};
