import type { IdentityProviderClient } from '../../identity-provider-config.ts';
import { githubProvider } from './github.ts';
import { oidcProvider } from './oidc.ts';

/** What must be known again when the browser comes back, beside the state itself. */
export interface FlowSecrets {
  /** Where the provider sends the browser back. */
  redirectUri: string;
  nonce: string;
  codeVerifier: string;
}

/** What the browser brings back. */
export interface CallbackParameters {
  state: string;
  code?: string | undefined;
  /** RFC 9207: who sent the browser back. */
  iss?: string | undefined;
  error?: string | undefined;
}

/** Somebody as his provider describes him. Nothing here is checked beyond its type; `email` may be any text. */
export interface ProvidedIdentity {
  issuer: string;
  subject: string;
  email: string | undefined;
  /** The provider vouches for `email`, in the very answer that `email` is from. */
  emailVerified: boolean;
  name: string | undefined;
  picture: string | undefined;
}

/** An OAuth 2.0 authorization-code flow with PKCE. Both rejects within the time limit, whatever the provider does. */
export interface IdentityProvider {
  /** Where the browser goes for a flow of this state, and what to keep until it is back. */
  begin(flow: { state: string; redirectUri: string }): Promise<{ url: string; secrets: FlowSecrets }>;
  /** Redeems the code. */
  finish(callback: CallbackParameters, secrets: FlowSecrets): Promise<ProvidedIdentity>;
}

/** Calls nobody yet: a provider that is down stops only those who want to log in through it. */
export const openIdentityProvider = (client: IdentityProviderClient): IdentityProvider =>
  client.kind === 'github' ? githubProvider(client) : oidcProvider(client);
