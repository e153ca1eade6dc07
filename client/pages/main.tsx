import { type ComponentType, render } from 'preact';
import { type PagePath, pagePaths } from '../../server/page-paths.ts';
import { ConfirmEmail } from './views/confirm-email.tsx';
import { ForgotPassword } from './views/forgot-password.tsx';
import { Home } from './views/home.tsx';
import { LogIn } from './views/log-in.tsx';
import { NotFound } from './views/not-found.tsx';
import { NotMe } from './views/not-me.tsx';
import { inOwnScript } from './views/own-script.tsx';
import { Register } from './views/register.tsx';
import { ResetPassword } from './views/reset-password.tsx';
import { SecondFactor } from './views/second-factor.tsx';
import { UndoEmailChange } from './views/undo-email-change.tsx';
import { VerifyEmail } from './views/verify-email.tsx';
import { rememberAsked } from './way-back.ts';

/** Of logged-in users: one script for all of them. */
const dashboard = () => import('./views/dashboard/pages.ts');

/** Every page. The browser itself navigates from one to the next: titles, history and focus are its own. */
const views: Record<PagePath, ComponentType> = {
  [pagePaths.home]: Home,
  [pagePaths.register]: Register,
  [pagePaths.logIn]: LogIn,
  [pagePaths.secondFactor]: SecondFactor,
  [pagePaths.verifyEmail]: VerifyEmail,
  [pagePaths.forgotPassword]: ForgotPassword,
  [pagePaths.resetPassword]: ResetPassword,
  [pagePaths.confirmEmail]: ConfirmEmail,
  [pagePaths.undoEmailChange]: UndoEmailChange,
  [pagePaths.notMe]: NotMe,
  [pagePaths.dashboard]: inOwnScript(async () => (await dashboard()).Profile),
  [pagePaths.security]: inOwnScript(async () => (await dashboard()).Security),
  [pagePaths.devices]: inOwnScript(async () => (await dashboard()).Devices),
  [pagePaths.activity]: inOwnScript(async () => (await dashboard()).Activity),
  [pagePaths.data]: inOwnScript(async () => (await dashboard()).YourData),
  [pagePaths.admin]: inOwnScript(async () => (await import('./views/admin/view.tsx')).AdminView),
};

rememberAsked();
const View = views[location.pathname as PagePath] ?? NotFound;
render(<View />, document.body);
