import { z } from 'zod';
import type { ExternalLogin } from '../server/accounts/external-login.ts';
import { pagePaths } from '../server/page-paths.ts';
import type { Context } from './context.ts';
import { loginRequest, publicProcedure, router } from './trpc.ts';

/** Where the browser is sent next: a fixed path of ours, or the provider's own page. No request chooses the target. */
const redirect = z.object({ location: z.string().meta({ description: 'The Location of the redirect' }) });

const locations: Record<ExternalLogin['result'], string> = {
  'logged-in': pagePaths.dashboard,
  cancelled: `${pagePaths.logIn}?error=cancelled`,
  failed: `${pagePaths.logIn}?error=oauth_failed`,
  'email-unverified': `${pagePaths.logIn}?error=email_unverified`,
  'verification-sent': pagePaths.verifyEmail,
};

/** One string or undefined: a parameter that is given twice is no answer of a provider. */
const parameter = z
  .unknown()
  .transform((value) => (typeof value === 'string' && value.length <= 4096 ? value : undefined))
  .meta({ type: 'string' })
  .optional();

/** Over REST it is in the path; a typed client of a service with one provider need not name it. */
const provider = z.string().default('').meta({ description: 'The name of the provider; without it, the first' });

const providerOf = ({ accounts }: Context, name = ''): string => name || (accounts.identityProviders[0] ?? '');

/** Login through external identity providers: interface.md section 5.7. */
export const idp = router({
  start: publicProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/auth/{provider}',
        parameterFrom: 'identityProviders',
        summary: 'Log in through an identity provider',
        description: 'Sends the browser to the provider, with a state cookie that lasts ten minutes.',
        tags: ['Authentication'],
        protect: false,
        redirect: `The provider's authorization page, or ${locations.failed} if it cannot be asked`,
        errors: ['NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ provider }).optional())
    .output(redirect)
    .query(async ({ ctx, input }) => {
      const name = providerOf(ctx, input?.provider);
      const begun = await ctx.accounts.beginExternalLogin({
        provider: name,
        ownUrl: ctx.ownUrl(),
        clientAddress: ctx.clientAddress(),
      });
      if (!begun) return { location: locations.failed };
      ctx.cookies.setState(name, begun.state);
      return { location: begun.url };
    }),

  callback: publicProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/auth/{provider}/callback',
        parameterFrom: 'identityProviders',
        summary: 'Where an identity provider sends the browser back',
        description: 'A success sets the session cookie `auth_session`. A session that came along ends.',
        tags: ['Authentication'],
        protect: false,
        setsCookie: true,
        redirect: Object.values(locations).join(', '),
        errors: ['INVALID_STATE', 'NOT_FOUND'],
      },
    })
    .input(z.object({ provider, code: parameter, state: parameter, iss: parameter, error: parameter }))
    .output(redirect)
    .query(async ({ ctx, input }) => {
      const name = providerOf(ctx, input.provider);
      const outcome = await ctx.accounts.finishExternalLogin({
        provider: name,
        code: input.code,
        state: input.state,
        iss: input.iss,
        error: input.error,
        cookieState: ctx.stateCookie(name),
        request: loginRequest(ctx),
        browser: ctx.browser(),
      });
      // Any page can send a browser here with a refusal: that must not end a login that the browser itself began.
      if (outcome.result !== 'cancelled' || outcome.wasOpen) ctx.cookies.clearState(name);
      if (outcome.result === 'logged-in') {
        ctx.cookies.setSession(outcome.login);
        ctx.setLogUser(outcome.login.user.id);
      }
      if (outcome.result === 'verification-sent') ctx.cookies.setBrowser(ctx.browser());
      return { location: locations[outcome.result] };
    }),
});
