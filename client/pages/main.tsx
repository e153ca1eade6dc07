import { type ComponentType, render } from 'preact';
import { type PagePath, pagePaths } from '../../server/shared/page-paths.ts';
import { rememberAsked } from './session/way-back.ts';
import { Authorize } from './views/authorize.tsx';
import { Device } from './views/device.tsx';
import { ForgotPassword } from './views/forgot-password.tsx';
import { Home } from './views/home.tsx';
import { LogOutRequest } from './views/log-out-request.tsx';
import { LogIn } from './views/login/log-in.tsx';
import { SecondFactor } from './views/login/second-factor.tsx';
import { ConfirmEmail } from './views/mailed-links/confirm-email.tsx';
import { NotMe } from './views/mailed-links/not-me.tsx';
import { ResetPassword } from './views/mailed-links/reset-password.tsx';
import { UndoEmailChange } from './views/mailed-links/undo-email-change.tsx';
import { VerifyEmail } from './views/mailed-links/verify-email.tsx';
import { NotFound } from './views/not-found.tsx';
import { inOwnScript } from './views/own-script.tsx';
import { Register } from './views/register.tsx';

/** The pages for logged-in users share one script. */
const dashboard = () => import('./views/dashboard/pages.ts');

/** All pages. The browser navigates between them and handles titles, history and focus. */
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
  [pagePaths.authorize]: Authorize,
  [pagePaths.logOut]: LogOutRequest,
  [pagePaths.device]: Device,
  [pagePaths.dashboard]: inOwnScript(async () => (await dashboard()).Profile),
  [pagePaths.security]: inOwnScript(async () => (await dashboard()).Security),
  [pagePaths.devices]: inOwnScript(async () => (await dashboard()).Devices),
  [pagePaths.activity]: inOwnScript(async () => (await dashboard()).Activity),
  [pagePaths.applications]: inOwnScript(async () => (await dashboard()).Applications),
  [pagePaths.data]: inOwnScript(async () => (await dashboard()).YourData),
  [pagePaths.admin]: inOwnScript(async () => (await import('./views/admin/view.tsx')).AdminView),
  [pagePaths.webhooks]: inOwnScript(async () => (await import('./views/webhooks/view.tsx')).Webhooks),
  [pagePaths.adminApplications]: inOwnScript(
    async () => (await import('./views/applications/view.tsx')).AdminApplications,
  ),
};

rememberAsked();
const View = views[location.pathname as PagePath] ?? NotFound;
render(<View />, document.body);
