import type { Middleware } from 'koa';
import { createCaller } from '../../../routers/index.ts';
import { pagePaths } from '../../shared/page-paths.ts';
import type { ContextFactory } from '../context.ts';

/**
 * Development only: a program that opens the mailed link, such as curl, gets the response of POST /auth/verify-email.
 * Browsers get the page with its button; in production all clients do, because mail scanners open links.
 */
export const mailedLink =
  (createContext: ContextFactory): Middleware =>
  async (ctx, next) => {
    const token =
      ctx.method === 'GET' && ctx.path === pagePaths.verifyEmail && new URLSearchParams(ctx.querystring).get('token');
    if (!token || ctx.get('Accept').toLowerCase().includes('text/html')) return next();
    ctx.state['route'] = pagePaths.verifyEmail;
    ctx.vary('Accept');
    ctx.set('Cache-Control', 'no-store');
    ctx.body = await createCaller(createContext(ctx)).auth.verifyEmail({ token });
  };
