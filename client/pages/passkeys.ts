import { type PublicKeyCredentialRequestOptionsJSON, startAuthentication } from '@simplewebauthn/browser';
import { type FinishPasskeyOutput, isNetworkError, isServiceError, isTimeoutError } from 'account-client';
import {
  type AuthenticationResponseJSON,
  registerPasskey,
  signalIfUnknown,
  signalPasskeys,
  supportsPasskeyAutofill,
  supportsPasskeys,
} from 'account-client/passkeys';
import { api, PasskeyError, refusalIn } from './api.ts';
import { text } from './language/texts.ts';
import { settings } from './settings.ts';

/** Passkeys are bound to APP_URL: browsers refuse them on any other host. */
export const hasPasskeys = supportsPasskeys() && location.origin === new URL(settings.appUrl).origin;

/** Whether fields can suggest passkeys (autofill). */
export const canSuggestPasskeys = async (): Promise<boolean> => hasPasskeys && supportsPasskeyAutofill();

interface Options {
  /** Suggests passkeys in the field with `webauthn` in its `autocomplete`, until another passkey is requested. */
  isSuggested?: boolean;
}

/** The response of the user's passkey. Rejects like a call, and with PasskeyError. */
export async function passkeyFor(
  purpose: 'login' | 'second-factor' | 'reauthenticate',
  { isSuggested = false }: Options = {},
): Promise<AuthenticationResponseJSON> {
  const optionsJSON = (await api.auth.beginPasskey.mutate({ purpose })) as PublicKeyCredentialRequestOptionsJSON;
  return startAuthentication({ optionsJSON, useBrowserAutofill: isSuggested }).catch(inWords(whyNoneUsed));
}

/** The result of a call with a passkey. Rejects like the call, and with PasskeyError if the passkey is refused. */
export async function ifAccepted<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const { code } = refusalIn(error);
    if (code !== 'INVALID_CREDENTIALS' && code !== 'INVALID_CODE') throw error;
    throw new PasskeyError(text('common.passkeys.refused'), { cause: error });
  }
}

/** Logs in with the response of the user's passkey. Rejects like `ifAccepted`. */
export const logInWith = (passkey: AuthenticationResponseJSON): Promise<FinishPasskeyOutput> =>
  ifAccepted(
    api.auth.finishPasskey.mutate(passkey).catch(async (error: unknown) => {
      await signalIfUnknown(error, { rpId: new URL(settings.appUrl).hostname, id: passkey.id });
      throw error;
    }),
  );

/** Tells the browser which passkeys are valid, and the name and address of a changed user. Never rejects. */
export async function tellOfPasskeys(user?: { name: string; email: string }): Promise<void> {
  if (hasPasskeys) await signalPasskeys(api, user).catch(() => undefined);
}

/** Creates a passkey and adds it to the logged-in user. Rejects like a call, and with PasskeyError. */
export const addPasskey = () => registerPasskey(api).catch(inWords(whyNoneMade));

/** Texts by the name of the browser's error (WebAuthn Level 3, sections 5.1.4 and 5.1.3). One name has many causes. */
type Reasons = ReadonlyMap<string, string>;

const whyNoneUsed: Reasons = new Map([['NotAllowedError', text('common.passkeys.notUsed')]]);
const whyNoneMade: Reasons = new Map([
  ['NotAllowedError', text('common.passkeys.notMade')],
  ['InvalidStateError', text('common.passkeys.exists')],
]);

/** Rethrows failed calls, and converts errors of the browser to PasskeyError. */
const inWords = (reasons: Reasons) => (error: unknown) => {
  if (isServiceError(error) || isNetworkError(error) || isTimeoutError(error)) throw error;
  const reason = error instanceof Error ? reasons.get(error.name) : undefined;
  throw new PasskeyError(reason ?? text('common.passkeys.failed'), { cause: error });
};
