import { z } from 'zod';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import type { OpenedProvider } from './contract.ts';
import { baseOf, plainOauthProvider } from './plain-oauth.ts';

const profile = z.object({
  id: z.string(),
  username: z.string(),
  global_name: z.string().nullish(),
  /** The name of a file. */
  avatar: z.string().nullish(),
  email: z.string().nullish(),
  /** True if the address is verified. */
  verified: z.boolean().optional(),
});

/** Discord (docs.discord.com, “OAuth2” and “User”; /.well-known/oauth-authorization-server). */
export function discordProvider(client: IdentityProviderClient): OpenedProvider {
  const base = baseOf(client);
  return plainOauthProvider(client, {
    issuer: base,
    authorizationEndpoint: `${base}/oauth2/authorize`,
    tokenEndpoint: `${base}/api/oauth2/token`,
    async identify(read) {
      const user = await read(`${base}/api/v10/users/@me`, profile);
      return {
        issuer: base,
        subject: user.id,
        email: user.email ?? undefined,
        emailVerified: user.verified === true,
        name: user.global_name ?? user.username,
        picture: user.avatar ? `https://cdn.discordapp.com/avatars/${user.id}/${user.avatar}.png` : undefined,
      };
    },
  });
}
