import * as oauth from 'openid-client';
import { z } from 'zod';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import { CALL_LIMIT_SECONDS, callsTo, isPlainHttp } from './calls.ts';
import { beginFlow, redeemCode } from './code-flow.ts';
import type { IdentityProvider } from './contract.ts';

const GITHUB = 'https://github.com';

const profile = z.object({
  /** Unlike the login, which can change hands, the number names one account for ever. */
  id: z.int(),
  login: z.string(),
  name: z.string().nullish(),
  avatar_url: z.string().nullish(),
});
const addresses = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));

/** GitHub: OAuth 2.0 without ID tokens. Its API answers the user's id and verified addresses. */
export function githubProvider(client: IdentityProviderClient): IdentityProvider {
  const base = client.issuer.replace(/\/+$/, '');
  const api = base === GITHUB ? 'https://api.github.com' : `${base}/api/v3`;
  const configuration = new oauth.Configuration(
    {
      // GitHub's own name in the `iss` of a callback (RFC 9207).
      issuer: `${base}/login/oauth`,
      authorization_endpoint: `${base}/login/oauth/authorize`,
      token_endpoint: `${base}/login/oauth/access_token`,
    },
    client.clientId,
    undefined,
    oauth.ClientSecretPost(client.clientSecret),
  );
  configuration[oauth.customFetch] = callsTo(client);
  configuration.timeout = CALL_LIMIT_SECONDS;
  if (isPlainHttp(base)) oauth.allowInsecureRequests(configuration);

  const read = async <T>(path: string, schema: z.ZodType<T>, token: string): Promise<T> => {
    const headers = new Headers({ Accept: 'application/vnd.github+json', 'X-GitHub-Api-Version': '2022-11-28' });
    const url = new URL(`${api}${path}`);
    const response = await oauth.fetchProtectedResource(configuration, token, url, 'GET', null, headers);
    if (response.status !== 200) throw new Error(`the GitHub API answered ${response.status} to ${path}`);
    return schema.parse(await response.json());
  };

  return {
    begin: (flow) => beginFlow(configuration, client, flow),

    async finish(callback, { redirectUri, codeVerifier }) {
      const { access_token: token } = await redeemCode(configuration, callback, { redirectUri, codeVerifier });
      const [user, emails] = await Promise.all([
        read('/user', profile, token),
        read('/user/emails?per_page=100', addresses, token),
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
  };
}
