/** The part of a flow that is needed when the browser comes back, beside the state itself. */
export interface FlowSecrets {
  /** Where the provider sends the browser back. */
  redirectUri: string;
  nonce: string;
  codeVerifier: string;
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
}

/** An OAuth 2.0 authorization-code flow with PKCE. Both steps end within the time limit, whatever the provider does. */
export interface IdentityProvider {
  /** The address to which the browser goes for a flow of this state, and the secrets to keep until it is back. */
  begin(flow: { state: string; redirectUri: string }): Promise<{ url: string; secrets: FlowSecrets }>;
  /** Redeems the code. */
  finish(callback: CallbackParameters, secrets: FlowSecrets): Promise<ProvidedIdentity>;
}
