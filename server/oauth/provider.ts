import type { Client, Configuration, JWK, KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { Users } from '../accounts/users/index.ts';
import { assertionAlgorithms } from '../applications/index.ts';
import { ServiceError } from '../errors.ts';
import { proofAlgorithms } from '../lib/credential.ts';
import { hashOf } from '../lib/random-token.ts';
import { pagePaths } from '../shared/page-paths.ts';
import { firstLanguage, LOCALES_PARAMETER, languages } from '../shared/texts/languages.ts';
import type { Log } from '../telemetry/log.ts';
import { type AdapterNeeds, createAdapter, type RequestState } from './adapter.ts';
import { MULTI_FACTOR } from './authorizations.ts';
import {
  compareSecret,
  extraMetadata,
  hasOpaqueTokens,
  resourceScopesOf,
  resourcesOf,
  responseModes,
} from './clients.ts';
import { wordsIn } from './grants.ts';
import { RESUME_COOKIE, routes } from './paths.ts';
import { createPolicy } from './policy.ts';
import { isIdentityScope } from './scopes.ts';
import { MAX_ASSERTION_SECONDS } from './short-lived.ts';

const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

/** Who sent a request, and what reports its failure. */
export interface Sender {
  /** The browser that sends it, from its cookie. */
  browser: string;
  clientAddress: string;
  /** Sets the headers of a failure of this service, and logs it. */
  report(failure: ServiceError): void;
}

interface Parts extends Pick<AdapterNeeds, 'database' | 'store' | 'grants' | 'limits'> {
  /** APP_URL. */
  issuer: string;
  keys: JWK[];
  users: Pick<Users, 'find'>;
  senderOf(request: KoaContextWithOIDC['req']): Sender | undefined;
  log: Log;
}

/** The certified library, configured for our accounts. It is loaded here, at the first use. */
export async function createProvider({ issuer, keys, users, senderOf, log, ...needs }: Parts): Promise<Provider> {
  const { default: OidcProvider, errors, interactionPolicy } = await import('oidc-provider');

  const states = new WeakMap<object, RequestState>();
  const storage: AdapterNeeds = {
    ...needs,
    request() {
      const { ctx } = OidcProvider;
      const state = (ctx && states.get(ctx)) ?? { sender: (ctx && senderOf(ctx.req)?.clientAddress) ?? '' };
      if (ctx) states.set(ctx, state);
      return state;
    },
    invalidGrant: (message) => new errors.InvalidGrant(message),
    invalidRequest: (message) => new errors.InvalidRequest(message),
  };

  /** What an access token for a resource is: the API of this service gets opaque ones, which can be revoked at once. */
  const resourceServer = ({ params }: KoaContextWithOIDC['oidc'], client: Client, resource: string) => {
    if (resource !== issuer && !resourcesOf(client).includes(resource)) throw new errors.InvalidTarget();
    const scopes = resourceScopesOf(client);
    // The library compares only its own scopes with the client's.
    const foreign = wordsIn(String(params?.['scope'] ?? '')).find(
      (scope) => !isIdentityScope(scope) && !scopes.includes(scope),
    );
    if (foreign !== undefined) throw new errors.InvalidScope('requested scope is not allowed', foreign);
    return {
      scope: scopes.join(' '),
      audience: resource,
      accessTokenFormat: resource === issuer || hasOpaqueTokens(client) ? 'opaque' : 'jwt',
      jwt: { sign: { alg: 'ES256' } },
    } as const;
  };

  const configuration: Configuration = {
    // Its own pages for user codes are not mounted: that address is a page of ours.
    routes: { ...routes, code_verification: pagePaths.device },
    discovery: {
      end_session_endpoint: `${issuer}${routes.end_session}`,
      ui_locales_supported: languages,
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
    },
    jwks: { keys },
    adapter: (model: string) => createAdapter(model, storage),
    responseTypes: ['code'],
    subjectTypes: ['public'],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    clientDefaults: { id_token_signed_response_alg: 'ES256', authorization_signed_response_alg: 'ES256' },
    enabledJWA: {
      idTokenSigningAlgValues: ['ES256'],
      userinfoSigningAlgValues: ['ES256'],
      dPoPSigningAlgValues: proofAlgorithms,
      clientAuthSigningAlgValues: assertionAlgorithms,
    },
    async assertJwtClientAuthClaimsAndHeader(_ctx, { aud, exp }) {
      // Another server could pass on an assertion that names it too.
      if (aud !== issuer) throw new errors.InvalidClientAuth('the audience (aud) must be the issuer');
      // Its use is remembered for no longer than that.
      if (Number(exp) > Date.now() / 1000 + MAX_ASSERTION_SECONDS)
        throw new errors.InvalidClientAuth('the assertion must expire within five minutes');
    },
    extraClientMetadata: { properties: extraMetadata },
    scopes: ['openid', 'offline_access'],
    claims: {
      openid: ['sub', 'sid'],
      profile: ['name', 'picture', 'website'],
      email: ['email', 'email_verified'],
      auth_time: null,
      acr: null,
    },
    acrValues: [MULTI_FACTOR],
    // For an API that asks for a stronger login (RFC 9470).
    extraTokenClaims: ({ oidc }) => {
      const { authTime, acr } =
        oidc.entities.AuthorizationCode ?? oidc.entities.RefreshToken ?? oidc.entities.DeviceCode ?? {};
      return { ...(authTime !== undefined && { auth_time: authTime }), ...(acr !== undefined && { acr }) };
    },
    features: {
      devInteractions: { enabled: false },
      // It needs a session of the library. Logouts are in logouts.ts.
      rpInitiatedLogout: { enabled: false },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true, deviceInfo: () => ({}) },
      dPoP: { enabled: true },
      introspection: {
        enabled: true,
        // The application itself, or the API that the token is for.
        allowedPolicy: (_ctx, client, token) =>
          token.clientId === client.clientId ||
          (client.clientAuthMethod !== 'none' &&
            resourcesOf(client).some((resource) => resource === audienceOf(token))),
      },
      pushedAuthorizationRequests: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: ({ oidc }, resource, client) => resourceServer(oidc, client, resource),
        // A code or refresh token for one resource needs no second `resource` parameter.
        useGrantedResource: async () => true,
        defaultResource: async (_ctx, _client, oneOf) => oneOf ?? [],
      },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
    },
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    clientBasedCORS: (_ctx, origin, client) =>
      (client.redirectUris ?? []).some((uri) => URL.parse(uri)?.origin === origin),
    cookies: { names: { resume: RESUME_COOKIE } },
    expiresWithSession: () => false,
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 5 * MINUTE,
      AuthorizationCode: MINUTE,
      ClientCredentials: 5 * MINUTE,
      DeviceCode: 10 * MINUTE,
      Grant: 365 * DAY,
      IdToken: 60 * MINUTE,
      Interaction: 30 * MINUTE,
      RefreshToken: 30 * DAY,
      Session: MINUTE,
    },
    interactions: {
      policy: createPolicy(interactionPolicy, ({ req }) => hashOf(senderOf(req)?.browser ?? '')),
      url: (_ctx, { uid, params }) => authorizePage(uid, params['ui_locales']),
    },
    async loadExistingGrant({ oidc }) {
      const id = oidc.result?.consent?.grantId;
      return id === undefined ? undefined : oidc.provider.Grant.find(id);
    },
    async findAccount({ oidc }, id, token) {
      return {
        accountId: id,
        async claims(use) {
          // The login that back-channel logout ends: a grant belongs to one session and application.
          const sid = use === 'id_token' && token && 'grantId' in token ? { sid: token.grantId } : {};
          // The library removes the others: an application gets them from userinfo, unless its token is for a resource.
          if (use === 'id_token' && oidc.entities.AccessToken?.aud === undefined) return { sub: id, ...sid };
          const user = await users.find(id);
          if (!user) throw new errors.InvalidToken('the user is unknown');
          const { name, avatar, website, email, emailVerified } = user;
          return {
            sub: id,
            ...sid,
            name,
            email,
            email_verified: emailVerified,
            ...(avatar && { picture: avatar }),
            ...(website && { website }),
          };
        },
      };
    },
    renderError(ctx, { error, error_description: description }) {
      ctx.type = 'text';
      ctx.body = `${error}: ${description ?? ''}\n`;
    },
  };

  const provider = new OidcProvider(issuer, configuration);
  provider.Client.prototype.compareClientSecret = function compareClientSecret(this: Client, secret: string) {
    return compareSecret(this, secret);
  };
  // Its URLs follow APP_URL, which the mount sets in each request.
  provider.proxy = true;
  provider.use(withoutCookies);
  provider.use(withResponseModes);
  provider.on('server_error', (ctx, error) => {
    if (!(error instanceof ServiceError)) return log.error({ err: error }, 'the OpenID provider failed');
    // An outage or a limit: with the status of the API. The body keeps OAuth's name, server_error.
    ctx.status = error.status;
    senderOf(ctx.req)?.report(error);
  });
  // Errors are already logged; Koa would write them to stderr as well.
  provider.silent = true;
  return provider;
}

/** The account page of a request, in the first language of `ui_locales` that it has. */
function authorizePage(id: string, locales: unknown): string {
  const language = typeof locales === 'string' ? firstLanguage(locales) : undefined;
  return `${pagePaths.authorize}?${new URLSearchParams({ id, ...(language && { [LOCALES_PARAMETER]: language }) })}`;
}

const audienceOf = (token: object): unknown => ('aud' in token ? token.aud : undefined);

/** The library also advertises modes that it refuses to every client. It has no setting for them. */
async function withResponseModes(ctx: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> {
  await next();
  if (ctx.oidc?.route === 'discovery')
    ctx.body = Object.assign({}, ctx.body, { response_modes_supported: responseModes });
}

/** Browsers get no cookie of the library: the mount binds a request to its browser by a cookie of ours. */
async function withoutCookies({ res }: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> {
  // A copy: the library adds its own to the list.
  const ours = [res.getHeader('set-cookie') ?? []].flat().map(String);
  await next();
  if (ours.length > 0) res.setHeader('set-cookie', ours);
  else res.removeHeader('set-cookie');
}
