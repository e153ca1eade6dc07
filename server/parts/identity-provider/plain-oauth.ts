import * as oauth from 'openid-client';
import type { z } from 'zod';
import type { IdentityProviderClient } from '../../config/identity-providers.ts';
import { CALL_LIMIT_SECONDS, callsTo, isPlainHttp } from './calls.ts';
import { beginFlow, redeemCode } from './code-flow.ts';
import type { OpenedProvider, ProvidedIdentity } from './contract.ts';

/** Reads from the provider's API with the user's access token. */
export type Read = <T>(url: string, schema: z.ZodType<T>) => Promise<T>;

interface Description {
  /** The provider's name in the `iss` of a callback (RFC 9207). */
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  headers?: Record<string, string>;
  /** Identifies the user. `token` is the access token that `read` sends. */
  identify(read: Read, token: string): Promise<ProvidedIdentity>;
}

/** An OAuth 2.0 provider without ID tokens; its own API identifies the user. */
export function plainOauthProvider(
  client: IdentityProviderClient,
  { issuer, authorizationEndpoint, tokenEndpoint, headers = {}, identify }: Description,
): OpenedProvider {
  const configuration = new oauth.Configuration(
    { issuer, authorization_endpoint: authorizationEndpoint, token_endpoint: tokenEndpoint },
    client.clientId,
    undefined,
    oauth.ClientSecretPost(client.clientSecret),
  );
  configuration[oauth.customFetch] = callsTo(client);
  configuration.timeout = CALL_LIMIT_SECONDS;
  if (isPlainHttp(issuer)) oauth.allowInsecureRequests(configuration);

  const readAs =
    (token: string): Read =>
    async (address, schema) => {
      const url = new URL(address);
      const response = await oauth.fetchProtectedResource(configuration, token, url, 'GET', null, new Headers(headers));
      if (response.status !== 200) throw new Error(`the provider's API answered ${response.status} to ${url.pathname}`);
      return schema.parse(await response.json());
    };

  return {
    begin: (flow) => beginFlow(configuration, client, flow),

    async finish(callback, { redirectUri, codeVerifier }) {
      const { access_token: token } = await redeemCode(configuration, callback, { redirectUri, codeVerifier });
      return identify(readAs(token), token);
    },
  };
}

/** The issuer without a trailing slash, which an operator may have typed. */
export const baseOf = ({ issuer }: Pick<IdentityProviderClient, 'issuer'>): string => issuer.replace(/\/+$/, '');
