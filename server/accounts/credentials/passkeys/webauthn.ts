import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Passkey } from '../../../../entities/index.ts';
import { lazy } from '../../../lib/lazy.ts';
import { CHALLENGE_LIFE_MS, type RegistrationMode } from './challenges.ts';

export type CreationOptions = PublicKeyCredentialCreationOptionsJSON;
export type RequestOptions = PublicKeyCredentialRequestOptionsJSON;

/** A passkey in the form that browsers accept: credential id in base64url, and transports. */
export interface Descriptor {
  id: string;
  transports: string[];
}

/** The fields of a browser's response that are read, in base64url. */
export interface AssertionResponse {
  id: string;
  rawId: string;
  type: 'public-key';
  response: Pick<AuthenticationResponseJSON['response'], 'clientDataJSON' | 'authenticatorData' | 'signature'> & {
    userHandle?: string | null | undefined;
  };
}
export interface RegistrationResponse {
  id: string;
  rawId: string;
  type: 'public-key';
  response: Pick<RegistrationResponseJSON['response'], 'clientDataJSON' | 'attestationObject'> & {
    transports?: string[] | undefined;
  };
}

/** The state signed by an authenticator along with the challenge. */
export type AssertedState = Pick<Passkey, 'signCount' | 'backupEligible' | 'backedUp'>;

/** A passkey created by an authenticator. */
export type NewPasskey = AssertedState & Pick<Passkey, 'credentialId' | 'publicKey' | 'aaguid'>;

/** Loaded at first use, because loading takes most of a second. */
const loadLibrary = lazy(async () => ({
  ...(await import('@simplewebauthn/server')),
  ...(await import('@simplewebauthn/server/helpers')),
}));
type Library = Awaited<ReturnType<typeof loadLibrary>>;

interface ClientData {
  challenge?: unknown;
  crossOrigin?: unknown;
}

const clientDataIn = (clientDataJSON: string): ClientData =>
  JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString());

/** Whether another site framed the page; the library does not check this. */
const isFramed = (clientDataJSON: string): boolean => clientDataIn(clientDataJSON).crossOrigin === true;

/** The challenge that a response claims to answer. Undefined if unreadable. */
export function challengeIn({ response }: { response: { clientDataJSON: string } }): string | undefined {
  try {
    const { challenge } = clientDataIn(response.clientDataJSON);
    return typeof challenge === 'string' ? challenge : undefined;
  } catch {
    return undefined;
  }
}

/** The user handle: an id without personal data (WebAuthn Level 3, section 14.6.1). */
const handleOf = (userId: string) => new Uint8Array(Buffer.from(userId));
/** In base64url. */
export const userHandleOf = (userId: string): string => Buffer.from(userId).toString('base64url');

/**
 * Accepts only `none` and self attestation, all that browsers send unless attestation is requested. For others the
 * library would verify certificates and query revocation lists on other hosts.
 */
function isWithoutCertificates({ decodeAttestationObject }: Library, attestationObject: string): boolean {
  const decoded = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')));
  const format = decoded.get('fmt');
  return format === 'none' || (format === 'packed' && decoded.get('attStmt').get('x5c') === undefined);
}

const stateOf = (signCount: number, info: { credentialDeviceType: string; credentialBackedUp: boolean }) => ({
  signCount,
  backupEligible: info.credentialDeviceType === 'multiDevice',
  backedUp: info.credentialBackedUp,
});

/** Undefined if the check fails. A response is untrusted input, and the library throws on any fault. */
const undefinedIfRefused = () => undefined;

/**
 * The ceremonies of WebAuthn Level 3, section 7. RP id and origin are those of APP_URL, whatever the request says. User
 * verification is required, except for a passkey that the browser adds by itself: its first use requires it.
 */
export function createWebAuthn(appUrl: string, { name: rpName }: { name: string }) {
  const { hostname: rpID, origin } = new URL(appUrl);
  const expected = { expectedOrigin: origin, expectedRPID: rpID };

  const registered = async (
    library: Library,
    { response, ...credential }: RegistrationResponse,
    { challenge, mode }: { challenge: string; mode: RegistrationMode },
  ): Promise<NewPasskey | undefined> => {
    const { clientDataJSON, attestationObject } = response;
    if (isFramed(clientDataJSON) || !isWithoutCertificates(library, attestationObject)) return undefined;
    const { verified, registrationInfo: info } = await library.verifyRegistrationResponse({
      response: { ...credential, response: { clientDataJSON, attestationObject }, clientExtensionResults: {} },
      expectedChallenge: challenge,
      ...expected,
      requireUserPresence: mode !== 'upgrade',
      requireUserVerification: mode !== 'upgrade',
    });
    if (!verified || info.credential.id !== credential.id) return undefined;
    return {
      credentialId: info.credential.id,
      publicKey: Buffer.from(info.credential.publicKey).toString('base64url'),
      aaguid: info.aaguid,
      ...stateOf(info.credential.counter, info),
    };
  };

  const asserted = async (
    { verifyAuthenticationResponse }: Library,
    { response, ...credential }: AssertionResponse,
    { challenge, publicKey }: { challenge: string; publicKey: string },
  ): Promise<AssertedState | undefined> => {
    const { clientDataJSON, authenticatorData, signature } = response;
    if (isFramed(clientDataJSON)) return undefined;
    const { verified, authenticationInfo: info } = await verifyAuthenticationResponse({
      response: {
        ...credential,
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      expectedChallenge: challenge,
      ...expected,
      requireUserVerification: true,
      // The count is compared when it is stored, after the signature check: before that it is unauthenticated.
      credential: { id: credential.id, publicKey: new Uint8Array(Buffer.from(publicKey, 'base64url')), counter: 0 },
    });
    return verified ? stateOf(info.newCounter, info) : undefined;
  };

  return {
    rpId: rpID,

    /** The options for creating a passkey other than the `existing` ones. */
    async creationOptions(
      user: { id: string; email: string; name: string },
      { challenge, mode, existing }: { challenge: string; mode: RegistrationMode; existing: Descriptor[] },
    ): Promise<CreationOptions> {
      const { generateRegistrationOptions } = await loadLibrary();
      return generateRegistrationOptions({
        // Authenticators show it.
        rpName,
        rpID,
        userID: handleOf(user.id),
        userName: user.email,
        userDisplayName: user.name,
        challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
        timeout: CHALLENGE_LIFE_MS,
        attestationType: 'none',
        excludeCredentials: existing,
        authenticatorSelection: {
          residentKey: 'required',
          userVerification: mode === 'upgrade' ? 'preferred' : 'required',
        },
      });
    },

    /** The options for using a passkey: one of `allowed`, or any that the user chooses. */
    async requestOptions(challenge: string, allowed: Descriptor[] | undefined): Promise<RequestOptions> {
      const { generateAuthenticationOptions } = await loadLibrary();
      return generateAuthenticationOptions({
        rpID,
        challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
        timeout: CHALLENGE_LIFE_MS,
        userVerification: 'required',
        ...(allowed && { allowCredentials: allowed }),
      });
    },

    /** Section 7.1. Undefined if anything differs from the request. */
    async verifyRegistration(
      response: RegistrationResponse,
      proof: { challenge: string; mode: RegistrationMode },
    ): Promise<NewPasskey | undefined> {
      const library = await loadLibrary();
      return registered(library, response, proof).catch(undefinedIfRefused);
    },

    /** Section 7.2, without the sign count. Undefined if anything differs from the request. */
    async verifyAssertion(
      response: AssertionResponse,
      proof: { challenge: string; publicKey: string },
    ): Promise<AssertedState | undefined> {
      const library = await loadLibrary();
      return asserted(library, response, proof).catch(undefinedIfRefused);
    },

    /**
     * Whether the response names its user (section 7.2, step 6), which is required if only the credential identified
     * the user.
     */
    isOf: (
      { response: { userHandle } }: AssertionResponse,
      userId: string,
      { isKnown }: { isKnown: boolean },
    ): boolean => (userHandle ? userHandle === userHandleOf(userId) : isKnown),
  };
}

export type WebAuthn = ReturnType<typeof createWebAuthn>;
