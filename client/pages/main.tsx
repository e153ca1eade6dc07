/// <reference types="vite/client" />
import { type ComponentType, render } from 'preact';
import { designPath, type PagePath, pagePaths } from '../../server/shared/page-paths.ts';
import { rememberAsked } from './session/way-back.ts';
import { Home } from './views/home.tsx';
import { LogInPage } from './views/login/log-in-page.tsx';
import { NotFound } from './views/not-found.tsx';
import { inOwnScript } from './views/own-script.tsx';

/** The shell has moved the token out of the URL before any script loads. */
const mailedLinks = () => import('./views/mailed-links/pages.ts');
/** The pages for logged-in users share one script. */
const dashboard = () => import('./views/dashboard/pages.ts');

/** All pages. The browser navigates between them and handles titles, history and focus. */
const views: Record<PagePath, ComponentType> & Partial<Record<typeof designPath, ComponentType>> = {
  [pagePaths.home]: Home,
  [pagePaths.register]: inOwnScript(async () => (await import('./views/register.tsx')).Register),
  [pagePaths.logIn]: LogInPage,
  [pagePaths.emailCode]: inOwnScript(async () => (await import('./views/login/email-code.tsx')).EmailCode),
  [pagePaths.secondFactor]: inOwnScript(async () => (await import('./views/login/second-factor.tsx')).SecondFactor),
  [pagePaths.verifyEmail]: inOwnScript(async () => (await mailedLinks()).VerifyEmail),
  [pagePaths.forgotPassword]: inOwnScript(async () => (await import('./views/forgot-password.tsx')).ForgotPassword),
  [pagePaths.resetPassword]: inOwnScript(async () => (await mailedLinks()).ResetPassword),
  [pagePaths.confirmEmail]: inOwnScript(async () => (await mailedLinks()).ConfirmEmail),
  [pagePaths.undoEmailChange]: inOwnScript(async () => (await mailedLinks()).UndoEmailChange),
  [pagePaths.notMe]: inOwnScript(async () => (await mailedLinks()).NotMe),
  [pagePaths.authorize]: inOwnScript(async () => (await import('./views/authorize.tsx')).Authorize),
  [pagePaths.logOut]: inOwnScript(async () => (await import('./views/log-out-request.tsx')).LogOutRequest),
  [pagePaths.device]: inOwnScript(async () => (await import('./views/device.tsx')).Device),
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
  // Only in the build for development: see vite.config.ts.
  ...(import.meta.env.MODE === 'design' && {
    [designPath]: inOwnScript(async () => (await import('./views/design/design.tsx')).Design),
  }),
};

rememberAsked();
const View = views[location.pathname as PagePath] ?? NotFound;
render(<View />, document.body);
