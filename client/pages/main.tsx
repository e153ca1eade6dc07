import { type ComponentType, render } from 'preact';
import { type PagePath, pagePaths } from '../../server/page-paths.ts';
import { Dashboard } from './views/dashboard.tsx';
import { ForgotPassword } from './views/forgot-password.tsx';
import { Home } from './views/home.tsx';
import { LogIn } from './views/log-in.tsx';
import { NotFound } from './views/not-found.tsx';
import { Register } from './views/register.tsx';
import { ResetPassword } from './views/reset-password.tsx';
import { VerifyEmail } from './views/verify-email.tsx';

/** Every page. The browser itself navigates from one to the next: titles, history and focus are its own. */
const views: Record<PagePath, ComponentType> = {
  [pagePaths.home]: Home,
  [pagePaths.register]: Register,
  [pagePaths.logIn]: LogIn,
  [pagePaths.verifyEmail]: VerifyEmail,
  [pagePaths.forgotPassword]: ForgotPassword,
  [pagePaths.resetPassword]: ResetPassword,
  [pagePaths.dashboard]: Dashboard,
};

const View = views[location.pathname as PagePath] ?? NotFound;
render(<View />, document.body);
