import * as oauth from 'openid-client';
import { z } from 'zod';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import { CALL_LIMIT_SECONDS, callsTo, isPlainHttp } from './calls.ts';
import { beginFlow, redeemCode } from './code-flow.ts';
import type { OpenedProvider, ProvidedIdentity } from './contract.ts';

/** How long a provider's metadata is cached. */
const DISCOVERY_LIFE_MS = 60 * 60 * 1000;

/** OpenID Connect Core 1.0 section 5.1. A claim of the wrong type counts as absent. */
const claims = z.object({
  email: z.string().optional().catch(undefined),
  email_verified: z.unknown().optional(),
  /** Only of Google: the domain of the organization. */
  hd: z.string().optional().catch(undefined),
  name: z.string().optional().catch(undefined),
  picture: z.string().optional().catch(undefined),
});

/** Claims of the ID token only. */
const login = z.object({ auth_time: z.number().optional().catch(undefined) });

/** Any OpenID Connect provider, discovered by its issuer (OpenID Connect Discovery 1.0) at first use. */
export function oidcProvider(client: IdentityProviderClient): OpenedProvider {
  const configured = discovered(client);

  return {
    begin: async (flow) => beginFlow(await configured(), client, flow),

    async finish(callback, { nonce, redirectUri, codeVerifier }) {
      const configuration = await configured();
      const tokens = await redeemCode(configuration, callback, { redirectUri, codeVerifier, expectedNonce: nonce });
      const idToken = tokens.claims();
      if (!idToken) throw new Error('the provider sent no ID token');
      const { iss: issuer, sub: subject } = idToken;
      const { auth_time: seconds } = login.parse(idToken);
      const of = { issuer, subject, loggedInAt: seconds === undefined ? undefined : seconds * 1000 };
      const stated = claims.parse(idToken);
      const isComplete = stated.email !== undefined && stated.name !== undefined;
      if (isComplete || !configuration.serverMetadata().userinfo_endpoint) return identityOf(of, stated);
      const userInfo = claims.parse(await oauth.fetchUserInfo(configuration, tokens.access_token, subject));
      // `email` and `email_verified` come from one source: mixed, one could vouch for the other's address.
      const { email, email_verified, hd } = stated.email === undefined ? userInfo : stated;
      const { name = userInfo.name, picture = userInfo.picture } = stated;
      return identityOf(of, { email, email_verified, hd, name, picture });
    },
  };
}

/**
 * Google verifies an address hosted elsewhere only once, when the Google account is created; its owner may differ now.
 * https://developers.google.com/identity/gsi/web/guides/verify-google-id-token
 */
export const isHostedBy = (
  issuer: string,
  { email = '', hd }: { email?: string | undefined; hd?: string | undefined },
): boolean => issuer !== 'https://accounts.google.com' || Boolean(hd) || /@gmail\.com$/i.test(email);

const identityOf = (
  of: Pick<ProvidedIdentity, 'issuer' | 'subject' | 'loggedInAt'>,
  stated: z.output<typeof claims>,
): ProvidedIdentity => ({
  ...of,
  email: stated.email,
  emailVerified: stated.email_verified === true && isHostedBy(of.issuer, stated),
  name: stated.name,
  picture: stated.picture,
});

/** The provider's metadata, fetched once and shared by concurrent callers; a failure is not cached. */
function discovered(client: IdentityProviderClient): () => Promise<oauth.Configuration> {
  let known: { configuration: Promise<oauth.Configuration>; until: number } | undefined;
  return () => {
    if (known && known.until > Date.now()) return known.configuration;
    const discovery = { configuration: discover(client), until: Date.now() + DISCOVERY_LIFE_MS };
    known = discovery;
    discovery.configuration.catch(() => {
      if (known === discovery) known = undefined;
    });
    return discovery.configuration;
  };
}

const discover = (client: IdentityProviderClient): Promise<oauth.Configuration> =>
  oauth.discovery(new URL(client.issuer), client.clientId, undefined, clientSecret(client.clientSecret), {
    [oauth.customFetch]: callsTo(client),
    timeout: CALL_LIMIT_SECONDS,
    execute: [
      // The signature is checked although the token comes straight from the provider: TLS may end at a proxy in
      // between.
      oauth.enableNonRepudiationChecks,
      ...(isPlainHttp(client.issuer) ? [oauth.allowInsecureRequests] : []),
    ],
  });

/** Sends the secret by the method in the provider's metadata, client_secret_basic by default (Discovery section 3). */
function clientSecret(secret: string): oauth.ClientAuth {
  const post = oauth.ClientSecretPost(secret);
  const basic = oauth.ClientSecretBasic(secret);
  return (server, ...rest) => {
    const isPost = server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ?? false;
    return (isPost ? post : basic)(server, ...rest);
  };
}
