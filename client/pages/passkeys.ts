import { type PublicKeyCredentialRequestOptionsJSON, startAuthentication } from '@simplewebauthn/browser';
import { isNetworkError, isServiceError, isTimeoutError } from 'account-client';
import {
  type AuthenticationResponseJSON,
  registerPasskey,
  supportsPasskeyAutofill,
  supportsPasskeys,
} from 'account-client/passkeys';
import { api, PasskeyError, refusalIn } from './api.ts';
import { settings } from './settings.ts';
import { text } from './texts.ts';

/** Passkeys are bound to the service's public address: at any other the browser would refuse them. */
export const hasPasskeys = supportsPasskeys() && location.origin === new URL(settings.appUrl).origin;

/** Whether passkeys can be offered in the suggestions of a field. */
export const canSuggestPasskeys = async (): Promise<boolean> => hasPasskeys && supportsPasskeyAutofill();

interface Options {
  /** In the suggestions of the field with `webauthn` in its `autocomplete`, until another passkey is asked for. */
  isSuggested?: boolean;
}

/** What the user's passkey answers. Rejects as a call does, and with PasskeyError. */
export async function passkeyFor(
  purpose: 'login' | 'second-factor' | 'reauthenticate',
  { isSuggested = false }: Options = {},
): Promise<AuthenticationResponseJSON> {
  const optionsJSON = (await api.auth.beginPasskey.mutate({ purpose })) as PublicKeyCredentialRequestOptionsJSON;
  return startAuthentication({ optionsJSON, useBrowserAutofill: isSuggested }).catch(inWords(whyNoneUsed));
}

/** What a call answers that was given a passkey. Rejects as the call does, and with PasskeyError where the passkey is refused. */
export async function ifAccepted<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const { code } = refusalIn(error);
    if (code !== 'INVALID_CREDENTIALS' && code !== 'INVALID_CODE') throw error;
    throw new PasskeyError(text('common.passkeys.refused'), { cause: error });
  }
}

/** Makes a passkey for the logged-in user, and adds it. Rejects as a call does, and with PasskeyError. */
export const addPasskey = () => registerPasskey(api).catch(inWords(whyNoneMade));

/** By the names of the browser's errors: WebAuthn Level 3, sections 5.1.4 and 5.1.3. One name has many causes. */
type Reasons = ReadonlyMap<string, string>;

const whyNoneUsed: Reasons = new Map([['NotAllowedError', text('common.passkeys.notUsed')]]);
const whyNoneMade: Reasons = new Map([
  ['NotAllowedError', text('common.passkeys.notMade')],
  ['InvalidStateError', text('common.passkeys.exists')],
]);

/** Passes failed calls on, and says for users what else has failed: the browser. */
const inWords = (reasons: Reasons) => (error: unknown) => {
  if (isServiceError(error) || isNetworkError(error) || isTimeoutError(error)) throw error;
  const reason = error instanceof Error ? reasons.get(error.name) : undefined;
  throw new PasskeyError(reason ?? text('common.passkeys.failed'), { cause: error });
};
