/** The paths of the account pages: for the service, its mails and redirects, and the links between the pages. */
export const pagePaths = {
  home: '/',
  register: '/register',
  logIn: '/login',
  verifyEmail: '/verify-email',
  forgotPassword: '/forgot-password',
  resetPassword: '/reset-password',
  dashboard: '/dashboard',
} as const;

export type PagePath = (typeof pagePaths)[keyof typeof pagePaths];
