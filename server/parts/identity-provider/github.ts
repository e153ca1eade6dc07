import { z } from 'zod';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import type { OpenedProvider } from './contract.ts';
import { baseOf, plainOauthProvider } from './plain-oauth.ts';

const GITHUB = 'https://github.com';

const profile = z.object({
  /** The id names one account forever; the login name can change hands. */
  id: z.int(),
  login: z.string(),
  name: z.string().nullish(),
  avatar_url: z.string().nullish(),
});
const addresses = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));

/** GitHub; its API returns the user's id and verified addresses. */
export function githubProvider(client: IdentityProviderClient): OpenedProvider {
  const base = baseOf(client);
  const api = base === GITHUB ? 'https://api.github.com' : `${base}/api/v3`;
  return plainOauthProvider(client, {
    issuer: `${base}/login/oauth`,
    authorizationEndpoint: `${base}/login/oauth/authorize`,
    tokenEndpoint: `${base}/login/oauth/access_token`,
    headers: { Accept: 'application/vnd.github+json', 'X-GitHub-Api-Version': '2022-11-28' },
    async identify(read) {
      const [user, emails] = await Promise.all([
        read(`${api}/user`, profile),
        read(`${api}/user/emails?per_page=100`, addresses),
      ]);
      const primary = emails.find((email) => email.primary);
      return {
        issuer: base,
        subject: String(user.id),
        email: primary?.email,
        emailVerified: primary?.verified === true,
        name: user.name ?? user.login,
        picture: user.avatar_url ?? undefined,
      };
    },
  });
}
