/** The endpoints, for the library and its mount. */
export const routes = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  userinfo: '/oauth/userinfo',
  jwks: '/oauth/jwks',
  revocation: '/oauth/revoke',
  introspection: '/oauth/introspect',
  pushed_authorization_request: '/oauth/par',
  end_session: '/oauth/logout',
  device_authorization: '/oauth/device',
} as const;

/** In it the library expects the id of a resumed request. Browsers never see it: the mount sets it. */
export const RESUME_COOKIE = 'oauth_resume';

const discovery = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'];
const all = new Set<string>([...Object.values(routes), ...discovery]);

const direct = new Set<string>([routes.pushed_authorization_request, routes.device_authorization]);

/** The id of an authorization request that comes back from the account page. */
export const resumedIn = (path: string): string | undefined => /^\/oauth\/authorize\/([\w-]{1,64})$/.exec(path)?.[1];

/** The endpoint of a path as a pattern; undefined for any other path. */
export const endpointOf = (path: string): string | undefined =>
  all.has(path) ? path : resumedIn(path) === undefined ? undefined : `${routes.authorization}/{id}`;

/**
 * The limit of a request that occupies the store before anybody has identified themselves. A page of another site can send
 * the direct ones unseen: they do not use up the visits.
 */
export function startLimitOf(method: string, path: string): 'authorizationStart' | 'directStart' | undefined {
  if (method === 'GET' && path === routes.authorization) return 'authorizationStart';
  return method === 'POST' && direct.has(path) ? 'directStart' : undefined;
}
