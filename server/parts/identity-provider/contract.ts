/** The part of a flow that is needed when the browser comes back, beside the state itself. */
export interface FlowSecrets {
  /** Where the provider sends the browser back. */
  redirectUri: string;
  nonce: string;
  codeVerifier: string;
}

export interface FlowStart {
  state: string;
  redirectUri: string;
  /** The user must log in anew, also where the provider knows the browser. */
  asksLogin: boolean;
}

/** The parameters that the browser brings back. */
export interface CallbackParameters {
  state: string;
  code?: string | undefined;
  /** RFC 9207: the issuer that sent the browser back. */
  iss?: string | undefined;
  error?: string | undefined;
}

/** The provider's description of a user. Nothing here is checked beyond its type; `email` may be any text. */
export interface ProvidedIdentity {
  issuer: string;
  subject: string;
  email: string | undefined;
  /** The provider vouches for `email`, in the very answer that `email` is from. */
  emailVerified: boolean;
  name: string | undefined;
  picture: string | undefined;
  /** When the user gave a credential there, in milliseconds since 1970; undefined where the provider does not state it. */
  loggedInAt?: number | undefined;
}

/** A provider once its protocol is loaded. */
export type OpenedProvider = Omit<IdentityProvider, 'provesLogin' | 'isTrustedForMfa'>;

/** An OAuth 2.0 authorization-code flow with PKCE. Both steps end within the time limit, whatever the provider does. */
export interface IdentityProvider {
  /** Whether it can be asked to let the user log in anew, and to state when that was. */
  readonly provesLogin: boolean;
  /** Whether a login there needs no second factor here. */
  readonly isTrustedForMfa: boolean;
  /** The address to which the browser goes for a flow, and the secrets to keep until it is back. */
  begin(flow: FlowStart): Promise<{ url: string; secrets: FlowSecrets }>;
  /** Redeems the code. */
  finish(callback: CallbackParameters, secrets: FlowSecrets): Promise<ProvidedIdentity>;
}
