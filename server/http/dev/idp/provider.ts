import { createPrivateKey } from 'node:crypto';
import type { JWK, KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { IdentityProviderClient } from '../../../config/identity-providers.ts';
import { escapeHtml } from '../../../lib/escape-html.ts';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';
import type { Secrets } from '../../../secrets.ts';
import type { Log } from '../../../telemetry/log.ts';
import { devPage } from '../page.ts';
import { storeAdapter } from './adapter.ts';
import type { TestUsers } from './test-users.ts';

export const SESSION_COOKIE = 'dev_idp_session';
const HOUR_SECONDS = 60 * 60;

interface Parts {
  client: IdentityProviderClient;
  /** The allowed redirect URIs. */
  redirectUris: string[];
  /** The path below which the provider is mounted. */
  mount: string;
  testUsers: TestUsers;
  store: KeyValueStore;
  secrets: Secrets;
  log: Log;
}

/** A certified OpenID provider with this service as its only client. oidc-provider is loaded at the first request. */
export async function createProvider({
  client,
  redirectUris,
  mount,
  testUsers,
  store,
  secrets,
  log,
}: Parts): Promise<Provider> {
  const { default: OidcProvider } = await import('oidc-provider');
  const provider = new OidcProvider(client.issuer, {
    adapter: (model) => storeAdapter(store, model),
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        redirect_uris: redirectUris,
        id_token_signed_response_alg: 'EdDSA',
      },
    ],
    jwks: { keys: [signingKey(secrets)] },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    cookies: {
      keys: secrets.derive('dev-idp:cookies'),
      names: { session: SESSION_COOKIE, interaction: 'dev_idp_interaction', resume: 'dev_idp_resume' },
      long: { signed: true, httpOnly: true, sameSite: 'lax', path: mount },
    },
    ttl: {
      AccessToken: HOUR_SECONDS,
      AuthorizationCode: 60,
      Grant: HOUR_SECONDS,
      IdToken: HOUR_SECONDS,
      Interaction: HOUR_SECONDS,
      Session: HOUR_SECONDS,
    },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `${mount}/interaction/${uid}` },
    loadExistingGrant: grantAll,
    async findAccount(_ctx, subject) {
      const user = await testUsers.find(subject);
      if (!user) return undefined;
      const { email, emailVerified, name } = user;
      return {
        accountId: subject,
        claims: () => ({ sub: subject, email, email_verified: emailVerified, ...(name && { name }) }),
      };
    },
    renderError(ctx, { error, error_description: description = '' }) {
      ctx.type = 'html';
      ctx.body = devPage('The test provider refused', `<p>${escapeHtml(`${error}: ${description}`)}</p>`);
    },
  });
  // Its URLs follow APP_URL, which the mount sets in each request.
  provider.proxy = true;
  provider.on('server_error', (_ctx, error) => log.error({ err: error }, 'the embedded identity provider failed'));
  // Errors are already logged; Koa would write them to stderr as well.
  provider.silent = true;
  return provider;
}

/** Grants every login all scopes and claims: there is no consent page. */
async function grantAll({ oidc }: KoaContextWithOIDC) {
  const { client, session, provider, requestParamScopes } = oidc;
  if (!client || !session?.accountId) return undefined;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope([...requestParamScopes].join(' '));
  await grant.save();
  return grant;
}

/**
 * An Ed25519 key from a seed derived from the current secret: the same at every start, never stored. One secret
 * suffices: the process that redeems a code fetches and checks the ID token immediately.
 */
function signingKey(secrets: Secrets): JWK {
  const [seed] = secrets.derive('dev-idp:signing-key');
  // RFC 8410 section 7: the bytes before the 32 octets of an Ed25519 private key.
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(seed, 'base64url')]);
  const { kty, crv, x, d } = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' });
  return { kty, crv, x, d, alg: 'EdDSA', use: 'sig', kid: 'embedded' };
}
