import * as oauth from 'openid-client';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import type { CallbackParameters, FlowSecrets, FlowStart } from './contract.ts';

/** The steps that OpenID Connect and plain OAuth 2.0 have in common: RFC 6749 section 4.1 with PKCE (RFC 7636). */

export async function beginFlow(
  configuration: oauth.Configuration,
  { scopes }: IdentityProviderClient,
  { state, redirectUri, asksLogin }: FlowStart,
): Promise<{ url: string; secrets: FlowSecrets }> {
  const secrets = { redirectUri, nonce: oauth.randomNonce(), codeVerifier: oauth.randomPKCECodeVerifier() };
  const url = oauth.buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    scope: scopes,
    state,
    // OpenID Connect only: the ID token returns the nonce.
    ...(scopes.split(' ').includes('openid') && { nonce: secrets.nonce }),
    code_challenge: await oauth.calculatePKCECodeChallenge(secrets.codeVerifier),
    code_challenge_method: 'S256',
    // OpenID Connect Core section 3.1.2.1; with max_age the ID token must contain auth_time.
    ...(asksLogin && { prompt: 'login', max_age: '0' }),
  });
  return { url: url.href, secrets };
}

/** The callback URL, built from the stored start of the flow, never from the Host of the request. */
function callbackUrl(redirectUri: string, callback: CallbackParameters): URL {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries(callback)) if (value !== undefined) url.searchParams.set(name, value);
  return url;
}

/** Exchanges the code. `expectedNonce` requires an ID token with this nonce. */
export async function redeemCode(
  configuration: oauth.Configuration,
  callback: CallbackParameters,
  { redirectUri, codeVerifier, expectedNonce }: Omit<FlowSecrets, 'nonce'> & { expectedNonce?: string },
) {
  return oauth.authorizationCodeGrant(configuration, callbackUrl(redirectUri, callback), {
    expectedState: callback.state,
    pkceCodeVerifier: codeVerifier,
    ...(expectedNonce !== undefined && { expectedNonce, idTokenExpected: true }),
  });
}
