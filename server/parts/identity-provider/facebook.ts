import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import type { OpenedProvider } from './contract.ts';
import { baseOf, plainOauthProvider } from './plain-oauth.ts';

const FACEBOOK = 'https://www.facebook.com';
/**
 * The version of the Graph API. Each is supported for two years; calls to an older one get the oldest supported
 * version.
 */
const VERSION = 'v23.0';

/** `id` is specific to this client; `email` is missing if the user withholds it. */
const profile = z.object({ id: z.string(), name: z.string().nullish(), email: z.string().nullish() });

/**
 * Facebook (“Manually build a login flow”, “Securing Graph API requests”), not OpenID Connect: its discovery has no
 * token endpoint. Addresses count as unverified; picture URLs expire and are ignored.
 */
export function facebookProvider(client: IdentityProviderClient): OpenedProvider {
  const base = baseOf(client);
  const graph = base === FACEBOOK ? 'https://graph.facebook.com' : base;
  return plainOauthProvider(client, {
    issuer: base,
    authorizationEndpoint: `${base}/${VERSION}/dialog/oauth`,
    tokenEndpoint: `${graph}/${VERSION}/oauth/access_token`,
    async identify(read, token) {
      const proof = createHmac('sha256', client.clientSecret).update(token).digest('hex');
      const query = new URLSearchParams({ fields: 'id,name,email', appsecret_proof: proof });
      const { id, name, email } = await read(`${graph}/${VERSION}/me?${query}`, profile);
      return {
        issuer: base,
        subject: id,
        email: email ?? undefined,
        emailVerified: false,
        name: name ?? undefined,
        picture: undefined,
      };
    },
  });
}
