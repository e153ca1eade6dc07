/** The paths of the account pages: for the service, its mails and redirects, and the links between the pages. */
export const pagePaths = {
  home: '/',
  register: '/register',
  logIn: '/login',
  secondFactor: '/second-factor',
  verifyEmail: '/verify-email',
  forgotPassword: '/forgot-password',
  resetPassword: '/reset-password',
  confirmEmail: '/confirm-email',
  undoEmailChange: '/undo-email-change',
  notMe: '/not-me',
  dashboard: '/dashboard',
  security: '/dashboard/security',
  devices: '/dashboard/devices',
  activity: '/dashboard/activity',
  data: '/dashboard/data',
  admin: '/admin',
} as const;

export type PagePath = (typeof pagePaths)[keyof typeof pagePaths];

type SessionPath = Extract<PagePath, `/dashboard${string}` | typeof pagePaths.admin>;

/** The pages of logged-in users. */
export const sessionPaths = Object.values(pagePaths).filter(
  (path): path is SessionPath => path.startsWith(pagePaths.dashboard) || path === pagePaths.admin,
);

/** Below these paths the service itself answers, whichever front end shows the pages. */
export const servicePaths = [
  '/api',
  '/auth',
  '/trpc',
  '/uploads',
  '/docs',
  '/openapi.json',
  '/livez',
  '/readyz',
  '/dev',
] as const;
