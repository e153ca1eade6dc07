/** The paths of the account pages: for the service, its mails and redirects, and the links between pages. */
export const pagePaths = {
  home: '/',
  register: '/register',
  logIn: '/login',
  emailCode: '/email-code',
  secondFactor: '/second-factor',
  verifyEmail: '/verify-email',
  forgotPassword: '/forgot-password',
  resetPassword: '/reset-password',
  confirmEmail: '/confirm-email',
  undoEmailChange: '/undo-email-change',
  notMe: '/not-me',
  authorize: '/authorize',
  logOut: '/logout',
  device: '/device',
  dashboard: '/dashboard',
  security: '/dashboard/security',
  devices: '/dashboard/devices',
  activity: '/dashboard/activity',
  applications: '/dashboard/applications',
  data: '/dashboard/data',
  admin: '/admin',
  webhooks: '/admin/webhooks',
  adminApplications: '/admin/applications',
} as const;

export type PagePath = (typeof pagePaths)[keyof typeof pagePaths];

/** The page of all controls, in development only. */
export const designPath = '/dev/design';

type SessionPath = Extract<PagePath, `/dashboard${string}` | `/admin${string}`>;

/** The pages of logged-in users. */
export const sessionPaths = Object.values(pagePaths).filter(
  (path): path is SessionPath => path.startsWith(pagePaths.dashboard) || path.startsWith(pagePaths.admin),
);

/** The service itself handles these paths, whichever front end shows the pages. */
export const servicePaths = [
  '/api',
  '/auth',
  '/trpc',
  '/oauth',
  '/.well-known',
  '/uploads',
  '/docs',
  '/openapi.json',
  '/livez',
  '/readyz',
  '/dev',
] as const;
