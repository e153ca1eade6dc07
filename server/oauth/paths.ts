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

const starts = new Set<string>([
  routes.authorization,
  routes.pushed_authorization_request,
  routes.device_authorization,
]);

/** The id of an authorization request that comes back from the account page. */
export const resumedIn = (path: string): string | undefined => /^\/oauth\/authorize\/([\w-]{1,64})$/.exec(path)?.[1];

/** The endpoint of a path as a pattern; undefined for any other path. */
export const endpointOf = (path: string): string | undefined =>
  all.has(path) ? path : resumedIn(path) === undefined ? undefined : `${routes.authorization}/{id}`;

/** The requests that occupy the store before anybody has identified themselves. */
export const isStart = (path: string): boolean => starts.has(path);
