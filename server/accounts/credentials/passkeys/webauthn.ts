import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Passkey } from '../../entities/index.ts';
import { lazy } from '../lazy.ts';
import { CHALLENGE_LIFE_MS } from './passkey-challenges.ts';

export type CreationOptions = PublicKeyCredentialCreationOptionsJSON;
export type RequestOptions = PublicKeyCredentialRequestOptionsJSON;

/** A passkey as browsers are told of it: its credential id in base64url, and how it can be reached. */
export interface Descriptor {
  id: string;
  transports: string[];
}

/** What a browser sends, as far as it is read; in base64url. */
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

/** What an authenticator has signed beside the challenge. */
export type AssertedState = Pick<Passkey, 'signCount' | 'backupEligible' | 'backedUp'>;

/** A passkey that an authenticator has made. */
export type NewPasskey = AssertedState & Pick<Passkey, 'credentialId' | 'publicKey' | 'aaguid'>;

/** Loading it takes most of a second: at the first use. */
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

/** Whether a page of another site has framed ours, which the library lets pass. */
const isFramed = (clientDataJSON: string): boolean => clientDataIn(clientDataJSON).crossOrigin === true;

/** The challenge that a response claims to answer; undefined where none is readable. */
export function challengeIn({ response }: { response: { clientDataJSON: string } }): string | undefined {
  try {
    const { challenge } = clientDataIn(response.clientDataJSON);
    return typeof challenge === 'string' ? challenge : undefined;
  } catch {
    return undefined;
  }
}

/** The user handle: an id without personal data, as WebAuthn (Level 3, section 14.6.1) asks for. */
const handleOf = (userId: string) => new Uint8Array(Buffer.from(userId));

/**
 * Only `none` and self attestation, which is all that a browser lets through where no attestation is asked for. Of any other
 * the library would check the certificates, and for that ask other hosts which of them are revoked.
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

/** Undefined where the check fails: a response is anybody's text, and the library throws at whatever is wrong with it. */
const undefinedIfRefused = () => undefined;

/**
 * The ceremonies of WebAuthn Level 3, section 7. The RP id and the origin are those of APP_URL, whatever a request names; the
 * user is always verified. Authenticators show the name of the service.
 */
export function createWebAuthn(appUrl: string, { name: rpName }: { name: string }) {
  const { hostname: rpID, origin } = new URL(appUrl);
  const expected = { expectedOrigin: origin, expectedRPID: rpID, requireUserVerification: true };

  const registered = async (
    library: Library,
    { response, ...credential }: RegistrationResponse,
    challenge: string,
  ): Promise<NewPasskey | undefined> => {
    const { clientDataJSON, attestationObject } = response;
    if (isFramed(clientDataJSON) || !isWithoutCertificates(library, attestationObject)) return undefined;
    const { verified, registrationInfo: info } = await library.verifyRegistrationResponse({
      response: { ...credential, response: { clientDataJSON, attestationObject }, clientExtensionResults: {} },
      expectedChallenge: challenge,
      ...expected,
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
      // The count is compared where it is stored, after the signature: before it, it would be anybody's claim.
      credential: { id: credential.id, publicKey: new Uint8Array(Buffer.from(publicKey, 'base64url')), counter: 0 },
    });
    return verified ? stateOf(info.newCounter, info) : undefined;
  };

  return {
    /** The options with which a browser makes a passkey that is none of the `existing`. */
    async creationOptions(
      user: { id: string; email: string; name: string },
      challenge: string,
      existing: Descriptor[],
    ): Promise<CreationOptions> {
      const { generateRegistrationOptions } = await loadLibrary();
      return generateRegistrationOptions({
        rpName,
        rpID,
        userID: handleOf(user.id),
        userName: user.email,
        userDisplayName: user.name,
        challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
        timeout: CHALLENGE_LIFE_MS,
        attestationType: 'none',
        excludeCredentials: existing,
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      });
    },

    /** The options with which a browser uses a passkey: any that its user chooses, or one of `allowed`. */
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

    /** Section 7.1. Undefined where anything is not as asked for. */
    async verifyRegistration(response: RegistrationResponse, challenge: string): Promise<NewPasskey | undefined> {
      const library = await loadLibrary();
      return registered(library, response, challenge).catch(undefinedIfRefused);
    },

    /** Section 7.2, without the sign count. Undefined where anything is not as asked for. */
    async verifyAssertion(
      response: AssertionResponse,
      proof: { challenge: string; publicKey: string },
    ): Promise<AssertedState | undefined> {
      const library = await loadLibrary();
      return asserted(library, response, proof).catch(undefinedIfRefused);
    },

    /** Whether the response names its user (section 7.2, step 6): one that was found by its credential alone must. */
    isOf: (
      { response: { userHandle } }: AssertionResponse,
      userId: string,
      { isKnown }: { isKnown: boolean },
    ): boolean => (userHandle ? userHandle === Buffer.from(userId).toString('base64url') : isKnown),
  };
}

export type WebAuthn = ReturnType<typeof createWebAuthn>;
