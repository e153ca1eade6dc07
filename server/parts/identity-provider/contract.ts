/** The secrets of a flow that the callback needs in addition to the state. */
export interface FlowSecrets {
  /** The redirect URI of the flow. */
  redirectUri: string;
  nonce: string;
  codeVerifier: string;
}

export interface FlowStart {
  state: string;
  redirectUri: string;
  /** True if the user must log in again, even if the provider knows the browser. */
  asksLogin: boolean;
}

/** The query parameters of the callback. */
export interface CallbackParameters {
  state: string;
  code?: string | undefined;
  /** RFC 9207: the issuer of the response. */
  iss?: string | undefined;
  error?: string | undefined;
}

/** The provider's claims about a user. Only their types are checked; `email` may be any text. */
export interface ProvidedIdentity {
  issuer: string;
  subject: string;
  email: string | undefined;
  /** True if the provider vouches for `email` in the same response that contains it. */
  emailVerified: boolean;
  name: string | undefined;
  picture: string | undefined;
  /**
   * When the user authenticated at the provider, in milliseconds since 1970; undefined if the provider does not state
   * it.
   */
  loggedInAt?: number | undefined;
}

/** A provider with its protocol loaded. */
export type OpenedProvider = Omit<IdentityProvider, 'provesLogin' | 'isTrustedForMfa'>;

/** An OAuth 2.0 authorization-code flow with PKCE. Both steps end within the time limit, whatever the provider does. */
export interface IdentityProvider {
  /** True if it can force a new login and state its time. */
  readonly provesLogin: boolean;
  /** True if a login there needs no second factor here. */
  readonly isTrustedForMfa: boolean;
  /** The authorization URL of a flow, and the secrets to keep for the callback. */
  begin(flow: FlowStart): Promise<{ url: string; secrets: FlowSecrets }>;
  finish(callback: CallbackParameters, secrets: FlowSecrets): Promise<ProvidedIdentity>;
}
