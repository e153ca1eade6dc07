import {
  type AuthenticationResponseJSON,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
  WebAuthnAbortService,
} from '@simplewebauthn/browser';
import { throwIfAborted, untilAborted } from '../aborts/until-aborted.ts';
import type { Client, FinishPasskeyOutput, PasskeysFinishRegistrationOutput } from '../api.ts';
import { signalIfUnknown } from './signals.ts';

/** Passkeys in browsers. A module of its own, because it alone loads @simplewebauthn/browser. */
export {
  type AuthenticationResponseJSON,
  browserSupportsWebAuthn as supportsPasskeys,
  browserSupportsWebAuthnAutofill as supportsPasskeyAutofill,
  type RegistrationResponseJSON,
} from '@simplewebauthn/browser';
export { signalIfUnknown, signalPasskeys } from './signals.ts';

export interface PasskeyRegistrationOptions {
  /** The user's name for it; by default the service names it. */
  name?: string | undefined;
  /** Aborts the registration; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface PasskeyLoginOptions {
  /**
   * Suggests passkeys in a field with `autocomplete="username webauthn"` and waits until the user picks one, instead of
   * opening the browser's dialog. Check `supportsPasskeyAutofill` first.
   */
  autofill?: boolean | undefined;
  /** Aborts the login; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Adds a passkey to the logged-in user, who must have given a credential in the last ten minutes. Rejects like a call,
 * with ServiceError (such as REAUTHENTICATION_REQUIRED), NetworkError or TimeoutError, and with the browser's error: its
 * `name` is `NotAllowedError` if the user cancelled, `InvalidStateError` if the authenticator already has a passkey of
 * this account (WebAuthn Level 3, section 5.1.3).
 */
export async function registerPasskey(
  client: Pick<Client, 'passkeys'>,
  { name, signal }: PasskeyRegistrationOptions = {},
): Promise<PasskeysFinishRegistrationOutput> {
  return untilAborted(signal, async (call) => {
    const options = (await client.passkeys.beginRegistration.mutate(undefined, call)) as CreationOptions;
    const response = await inBrowser(() => startRegistration({ optionsJSON: options }), signal);
    return client.passkeys.finishRegistration.mutate({ ...response, ...(name !== undefined && { name }) }, call);
  });
}

/**
 * Call it in the first five minutes after a login by password: the browser's password manager may then add a passkey by
 * itself. Shows nothing. Resolves to undefined if the browser cannot, or adds none; rejects like a call.
 */
export async function upgradeToPasskey(
  client: Pick<Client, 'passkeys'>,
  { signal }: Pick<PasskeyRegistrationOptions, 'signal'> = {},
): Promise<PasskeysFinishRegistrationOutput | undefined> {
  if (!(await addsByItself())) return undefined;
  return untilAborted(signal, async (call) => {
    const mode = 'upgrade';
    const options = (await client.passkeys.beginRegistration.mutate({ mode }, call)) as CreationOptions;
    const start = () => startRegistration({ optionsJSON: options, useAutoRegister: true });
    // It has no fresh password, or has this user's passkey.
    const response = await inBrowser(start, signal).catch(() => undefined);
    return response && client.passkeys.finishRegistration.mutate({ ...response, mode }, call);
  });
}

async function addsByItself(): Promise<boolean> {
  const browser: Partial<Pick<typeof PublicKeyCredential, 'getClientCapabilities'>> | undefined =
    globalThis.PublicKeyCredential;
  const capabilities = await browser?.getClientCapabilities?.().catch(() => undefined);
  return capabilities?.['conditionalCreate'] === true;
}

/**
 * Logs in by a passkey that the user picks. A pending login by `autofill` rejects with an AbortError as soon as another
 * one starts. Rejects like a call, and with the browser's error: its `name` is `NotAllowedError` if the user cancelled.
 */
export async function logInWithPasskey(
  client: Pick<Client, 'auth'>,
  options: PasskeyLoginOptions = {},
): Promise<FinishPasskeyOutput> {
  return untilAborted(options.signal, async (call) => {
    const { passkey, rpId } = await ask(client, 'login', options);
    try {
      return await client.auth.finishPasskey.mutate(passkey, call);
    } catch (error) {
      await signalIfUnknown(error, { rpId, id: passkey.id });
      throw error;
    }
  });
}

/**
 * Lets the user pick a passkey, and returns the input for one call: `auth.secondFactor` to complete a pending login,
 * or `auth.reauthenticate` in a session. Rejects like `logInWithPasskey`.
 */
export async function askForPasskey(
  client: Pick<Client, 'auth'>,
  purpose: 'login' | 'second-factor' | 'reauthenticate',
  options: PasskeyLoginOptions = {},
): Promise<AuthenticationResponseJSON> {
  return (await ask(client, purpose, options)).passkey;
}

const ask = (
  client: Pick<Client, 'auth'>,
  purpose: 'login' | 'second-factor' | 'reauthenticate',
  { autofill = false, signal }: PasskeyLoginOptions,
): Promise<{ passkey: AuthenticationResponseJSON; rpId: string }> =>
  untilAborted(signal, async (call) => {
    const options = (await client.auth.beginPasskey.mutate({ purpose }, call)) as RequestOptions;
    const start = () => startAuthentication({ optionsJSON: options, useBrowserAutofill: autofill });
    return { passkey: await inBrowser(start, signal), rpId: options.rpId ?? location.hostname };
  });

type CreationOptions = PublicKeyCredentialCreationOptionsJSON;
type RequestOptions = PublicKeyCredentialRequestOptionsJSON;

/** Browsers allow one such request at a time: the signal ends it. */
async function inBrowser<T>(start: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  throwIfAborted(signal);
  const cancel = () => WebAuthnAbortService.cancelCeremony();
  signal?.addEventListener('abort', cancel);
  try {
    return await start();
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}
