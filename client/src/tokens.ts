import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';

/**
 * Access tokens of applications, for the APIs that get them. A module of its own, because it alone loads jose. On
 * WebCrypto: Node, Deno and workers.
 */

export interface AccessTokenOptions {
  /** APP_URL of the account service, as it is written there. */
  issuer: string;
  /** The address of this API, as in the `resources` of the application. */
  audience: string;
  /** Scopes that the token must have, separated by spaces. */
  scope?: string | undefined;
  /** Replaces the global fetch, which gets the keys. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** RFC 9068 section 2.2. Times in seconds since 1970. */
export interface AccessTokenClaims {
  iss: string;
  aud: string | string[];
  /** The user; the application itself in a token by client credentials. */
  sub: string;
  /** The application. */
  client_id: string;
  scope: string[];
  jti: string;
  iat: number;
  exp: number;
  /** When the user gave a credential. */
  auth_time?: number;
  /** `mfa`: by a passkey, or with a second factor. */
  acr?: string;
}

const statuses = { INVALID_TOKEN: 401, INSUFFICIENT_SCOPE: 403, KEYS_UNAVAILABLE: 503 } as const;

/** The token was refused, or (KEYS_UNAVAILABLE) could not be checked. `status` is the answer to the caller. */
export class AccessTokenError extends Error {
  readonly code: keyof typeof statuses;
  readonly status: number;

  constructor(code: keyof typeof statuses, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AccessTokenError';
    this.code = code;
    this.status = statuses[code];
  }
}

interface Keys {
  fetch: typeof globalThis.fetch;
  find: JWTVerifyGetKey;
}

/** By issuer. They are fetched again after ten minutes, and for an unknown key at most every 30 seconds. */
const known = new Map<string, Keys>();

function keysOf(issuer: string, fetch: typeof globalThis.fetch): Keys {
  let keys = known.get(issuer);
  if (!keys) {
    const made: Keys = { fetch, find: async (...token) => remote(...token).catch(unlessUnknown) };
    const remote = createRemoteJWKSet(new URL(`${issuer}/oauth/jwks`), {
      [customFetch]: (url, init) => made.fetch(url, init),
    });
    known.set(issuer, made);
    keys = made;
  }
  keys.fetch = fetch;
  return keys;
}

function unlessUnknown(cause: unknown): never {
  if (cause instanceof errors.JWKSNoMatchingKey || cause instanceof errors.JWKSMultipleMatchingKeys) throw cause;
  throw new AccessTokenError('KEYS_UNAVAILABLE', 'The keys of the issuer cannot be fetched', { cause });
}

/**
 * The claims of a JWT access token (RFC 9068) that the account service issued for this API. Rejects with
 * AccessTokenError, also if the token is bound to a key (DPoP): its proof is not checked here.
 */
export async function verifyAccessToken(
  token: string,
  { issuer, audience, scope: needed = '', fetch = globalThis.fetch }: AccessTokenOptions,
): Promise<AccessTokenClaims> {
  // jose skips the check of an empty value.
  if (!issuer || !audience) throw new TypeError('issuer and audience are required');
  const { payload } = await jwtVerify<Omit<AccessTokenClaims, 'scope'>>(token, keysOf(issuer, fetch).find, {
    algorithms: ['ES256'],
    typ: 'at+jwt',
    issuer,
    audience,
    requiredClaims: ['sub', 'client_id', 'jti', 'iat', 'exp'],
  }).catch((cause: unknown) => {
    throw cause instanceof AccessTokenError ? cause : invalid(cause);
  });
  if ('cnf' in payload) throw invalid();
  const scope = wordsIn(payload['scope']);
  if (!wordsIn(needed).every((name) => scope.includes(name)))
    throw new AccessTokenError('INSUFFICIENT_SCOPE', `The access token needs the scope ${needed}`);
  return { ...payload, scope };
}

const invalid = (cause?: unknown) => new AccessTokenError('INVALID_TOKEN', 'The access token is not valid', { cause });

const wordsIn = (text: unknown): string[] => (typeof text === 'string' ? text.split(' ').filter(Boolean) : []);
