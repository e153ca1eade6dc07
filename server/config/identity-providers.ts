import { z } from 'zod';
import { isInTheClear } from '../loopback.ts';

/**
 * The identity provider's part of the environment. A known provider needs two variables, client id and secret; any other
 * also its name and its issuer.
 */

const knownIssuers: Record<string, string> = {
  google: 'https://accounts.google.com',
  microsoft: 'https://login.microsoftonline.com/common/v2.0',
  gitlab: 'https://gitlab.com',
  /** Plain OAuth 2.0; with IDP_ISSUER a GitHub Enterprise Server. */
  github: 'https://github.com',
};

/** The path segments in use below /auth, and what password accounts and their login method are called (`provider`, `unproven`). */
export const takenNames = [
  'email',
  'password',
  'register',
  'verify-email',
  'resend-verification',
  'login',
  'logout',
  'logout-all',
  'not-me',
  'forgot-password',
  'reset-password',
];

const DEFAULT_NAME = 'idp';
const DEFAULT_SCOPES = 'openid email profile';
const GITHUB_SCOPES = 'read:user user:email';

/** OpenID Connect Discovery section 3; plain http only where no wire is crossed. */
function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.search || url.hash || url.username || url.password) return false;
  return ['http:', 'https:'].includes(url.protocol) && !isInTheClear(text);
}

/** RFC 6749 section 3.3. */
const scopeToken = '[\\x21\\x23-\\x5b\\x5d-\\x7e]+';

export const identityProviderVariables = {
  IDP_NAME: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/, 'must be at most 32 of a-z, 0-9, - and _')
    .refine((name) => !takenNames.includes(name), 'must be another name: this one is taken below /auth')
    .default(DEFAULT_NAME),
  IDP_ISSUER: z
    .string()
    .refine(isIssuer, 'must be an address that starts with https:// (http:// on this machine only)')
    .optional(),
  IDP_CLIENT_ID: z.string().optional(),
  IDP_CLIENT_SECRET: z.string().optional(),
  IDP_SCOPES: z
    .string()
    .regex(new RegExp(`^${scopeToken}(?: ${scopeToken})*$`), 'must be scopes with one space between them')
    .optional(),
};

const credentials = ['IDP_CLIENT_ID', 'IDP_CLIENT_SECRET'] as const;

/**
 * The variables that are missing beside the given ones. A name alone names the embedded provider, where there is one.
 */
export function identityProviderProblems(
  env: Record<string, string | undefined>,
  { hasEmbedded }: { hasEmbedded: boolean },
): string[] {
  const telling = ['IDP_ISSUER', ...credentials, ...(hasEmbedded ? [] : ['IDP_NAME', 'IDP_SCOPES'])];
  if (telling.every((variable) => env[variable] === undefined)) return [];
  const name = env['IDP_NAME'] ?? DEFAULT_NAME;
  const problems = credentials
    .filter((variable) => env[variable] === undefined)
    .map((variable) => `${variable} is missing: the identity provider needs it`);
  if (env['IDP_ISSUER'] === undefined && !Object.hasOwn(knownIssuers, name)) {
    problems.push(`IDP_ISSUER is missing: only ${Object.keys(knownIssuers).join(', ')} are known by their IDP_NAME`);
  }
  if (name !== 'github' && env['IDP_SCOPES'] && !env['IDP_SCOPES'].split(' ').includes('openid')) {
    problems.push('IDP_SCOPES must have openid among them');
  }
  return problems;
}

/** This service as a client of an identity provider. */
export interface IdentityProviderClient {
  /** OpenID Connect, or GitHub's plain OAuth 2.0. */
  kind: 'oidc' | 'github';
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Separated by spaces. */
  scopes: string;
  /** Where calls to the issuer's origin go instead: only the embedded provider has such an address. */
  address?: string;
}

/** `client` is undefined unless a provider is configured: then the embedded one stands in where there is one. */
export function identityProviderOf(env: z.output<z.ZodObject<typeof identityProviderVariables>>): {
  name: string;
  scopes: string;
  /** Where the provider sends the browser back, below one of our own addresses. */
  callbackPath: string;
  client: IdentityProviderClient | undefined;
} {
  const { IDP_NAME: name, IDP_CLIENT_ID: clientId, IDP_CLIENT_SECRET: clientSecret } = env;
  const issuer = env.IDP_ISSUER ?? knownIssuers[name];
  const isConfigured = issuer !== undefined && clientId !== undefined && clientSecret !== undefined;
  const kind = isConfigured && name === 'github' ? 'github' : 'oidc';
  const scopes = env.IDP_SCOPES ?? (kind === 'github' ? GITHUB_SCOPES : DEFAULT_SCOPES);
  const client = isConfigured ? ({ kind, issuer, clientId, clientSecret, scopes } as const) : undefined;
  return { name, scopes, callbackPath: `/auth/${name}/callback`, client };
}
