import { createHash, randomBytes } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { type Answer, serve } from './http.ts';

export const CLIENT_ID = 'accounts';
export const CLIENT_SECRET = 'a secret: of/this+client';

/** The provider's statement about a user, in OpenID Connect claims. */
export type Claims = Record<string, unknown>;

/** The deviations of the provider for one code. */
export interface Lie {
  /** Replaces claims of the ID token; undefined removes one. */
  idToken?: Claims;
  /** Claims from the userinfo endpoint instead of the ID token. */
  userinfo?: Claims;
  signature?: 'none' | 'secret' | 'other key';
  /** Replaces `iss` of the callback. */
  iss?: string;
  /** The challenge of another flow: the code was injected. */
  challenge?: string;
  /** Replaces the answer of the token endpoint. */
  token?: Answer;
}

interface Grant {
  claims: Claims;
  challenge: string;
  redirectUri: string;
  lie: Lie;
}

/** RFC 6749 section 2.3.1: both parts are form-encoded before base64. */
const basicWith = (secret: string) =>
  `Basic ${btoa(`${encodeURIComponent(CLIENT_ID)}:${new URLSearchParams({ s: secret }).toString().slice(2)}`)}`;

/** Unix seconds, like times in tokens (RFC 7519). */
export const secondsFromNow = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

/** An OpenID provider with its own signing, so that it can lie anywhere. Without a lie it behaves correctly. */
export async function startHostileProvider() {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  const otherKey = await generateKeyPair('RS256');
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] };
  const grants = new Map<string, Grant>();
  const userinfo = new Map<string, Claims>();
  let discovery: Answer | undefined;
  const calls: string[] = [];
  let secrets = [CLIENT_SECRET];

  const sign = async (claims: Claims, signature: Lie['signature']): Promise<string> => {
    if (signature === 'none') return new UnsecuredJWT(claims).encode();
    const jwt = new SignJWT(claims).setProtectedHeader({ alg: signature === 'secret' ? 'HS256' : 'RS256', kid: 'one' });
    if (signature === 'secret') return jwt.sign(new TextEncoder().encode(CLIENT_SECRET));
    return jwt.sign(signature === 'other key' ? otherKey.privateKey : privateKey);
  };

  const exchange = async (form: URLSearchParams, authorization: string | undefined): Promise<Answer> => {
    const code = form.get('code') ?? '';
    const grant = grants.get(code);
    if (!secrets.map(basicWith).includes(authorization ?? '')) {
      return { status: 401, body: { error: 'invalid_client' } };
    }
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (!grant || challenge !== grant.challenge || form.get('redirect_uri') !== grant.redirectUri) {
      return { status: 400, body: { error: 'invalid_grant' } };
    }
    grants.delete(code);
    const { claims, lie } = grant;
    if (lie.token) return lie.token;
    const accessToken = randomBytes(16).toString('hex');
    userinfo.set(accessToken, { ...(lie.userinfo ?? claims), sub: lie.userinfo?.['sub'] ?? claims['sub'] });
    const idToken = {
      iss: server.url,
      aud: CLIENT_ID,
      iat: secondsFromNow(0),
      exp: secondsFromNow(300),
      ...(lie.userinfo ? { sub: claims['sub'], nonce: claims['nonce'] } : claims),
      ...lie.idToken,
    };
    const body = { access_token: accessToken, token_type: 'Bearer', id_token: await sign(idToken, lie.signature) };
    return { body };
  };

  /** Handles an authorization request: returns the URL that the browser is sent back to. */
  const authorize = (request: URL, claims: Claims, lie: Lie = {}): URL => {
    const parameter = (name: string) => request.searchParams.get(name) ?? '';
    const code = randomBytes(16).toString('hex');
    const redirectUri = parameter('redirect_uri');
    grants.set(code, {
      claims: { nonce: parameter('nonce'), ...claims },
      challenge: lie.challenge ?? parameter('code_challenge'),
      redirectUri,
      lie,
    });
    const url = new URL(redirectUri);
    url.search = new URLSearchParams({ code, state: parameter('state'), iss: lie.iss ?? server.url }).toString();
    return url;
  };

  const loginOf = (url: URL, body: string) =>
    authorize(url, JSON.parse(new URLSearchParams(body).get('claims') ?? '{}') as Claims).href;

  const server = await serve(({ url, headers, body }) => {
    calls.push(url.pathname);
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return (
          discovery ?? {
            body: {
              issuer: server.url,
              authorization_endpoint: `${server.url}/authorize`,
              token_endpoint: `${server.url}/token`,
              userinfo_endpoint: `${server.url}/userinfo`,
              jwks_uri: `${server.url}/keys`,
              response_types_supported: ['code'],
              subject_types_supported: ['public'],
              id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
            },
          }
        );
      case '/keys':
        return { body: keys };
      case '/token':
        return exchange(new URLSearchParams(body), headers.authorization);
      case '/authorize':
        return body === '' ? loginForm(url) : { status: 303, headers: { location: loginOf(url, body) }, body: '' };
      case '/userinfo':
        return { body: userinfo.get(headers.authorization?.replace(/^Bearer /i, '') ?? '') ?? 'nobody' };
      default:
        return { status: 404, body: 'nothing here' };
    }
  });

  return {
    ...server,
    /** The requested paths, in order. */
    calls,
    /** The answer to discovery from now on; undefined is the right one. */
    setDiscovery(answer: Answer | undefined) {
      discovery = answer;
    },

    /** The client secrets from now on. */
    accept(...accepted: string[]) {
      secrets = accepted;
    },

    authorize,
  };
}

/** A strict login page: its form may lead to the redirect URI of the client, and to no third origin. */
const loginForm = ({ searchParams }: URL): Answer => ({
  type: 'text/html',
  headers: {
    'content-security-policy': `form-action 'self' ${new URL(searchParams.get('redirect_uri') ?? 'http://nowhere.test').origin}`,
  },
  body: '<!doctype html><link rel="icon" href="data:,"><form method="post"><label>Claims <textarea name="claims"></textarea></label><button>Log in</button></form>',
});

export type HostileProvider = Awaited<ReturnType<typeof startHostileProvider>>;

/** The four variables for an operator with one provider. */
export const environmentFor = ({ url }: { url: string }, name = 'acme') => ({
  IDP_NAME: name,
  IDP_ISSUER: url,
  IDP_CLIENT_ID: CLIENT_ID,
  IDP_CLIENT_SECRET: CLIENT_SECRET,
});

/** The same for one of several providers. */
export const namedEnvironmentFor = ({ url }: { url: string }, name: string) => ({
  [`IDP_${name.toUpperCase()}_ISSUER`]: url,
  [`IDP_${name.toUpperCase()}_CLIENT_ID`]: CLIENT_ID,
  [`IDP_${name.toUpperCase()}_CLIENT_SECRET`]: CLIENT_SECRET,
});
