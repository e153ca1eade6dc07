export const OFFLINE = 'offline_access';

/** The scopes of the OpenID provider; all others belong to resources. */
const identityScopes = ['openid', 'profile', 'email', OFFLINE] as const;
export const isIdentityScope = (scope: string): boolean => identityScopes.some((known) => known === scope);

/** What an application may ask for: its list, and `openid` if it has no identity scope. */
export const allowedScopes = (ofApplication: readonly string[]): readonly string[] =>
  ofApplication.some(isIdentityScope) ? ofApplication : ['openid', ...ofApplication];

/** For a request without a scope (RFC 6749 section 3.3): all of the application's that fit it, except `offline_access`. */
export const defaultScopes = (ofApplication: readonly string[], resource: unknown): string[] =>
  ofApplication.filter((scope) => scope !== OFFLINE && (resource !== undefined || isIdentityScope(scope)));
