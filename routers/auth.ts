import { z } from 'zod';
import type { UnprovenMethod } from '../server/accounts/login-methods.ts';
import { ServiceError } from '../server/errors.ts';
import * as fields from './fields.ts';
import { idp } from './identity-provider.ts';
import { currentSession, loginRequest, publicProcedure, router, sessionProcedure } from './trpc.ts';

const done = z.object({ success: z.literal(true), message: z.string() });
const answer = (message: string) => ({ success: true as const, message });

const unprovenMethod = z.object({
  method: z.string().meta({ description: '`password`, or the name of an identity provider', example: 'password' }),
  addedAt: z.int().meta({ description: 'Unix seconds' }),
});
const toUnprovenMethod = ({ method, addedAt }: UnprovenMethod) => ({ method, addedAt: Math.floor(addedAt / 1000) });

export const auth = router({
  idp,

  register: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/register',
        summary: 'Create an account',
        description:
          'Sends a mail with a link that verifies the address, after which the account can be used. Sets the cookie `auth_browser`, which recognizes the browser when the link is opened.',
        tags: ['Authentication'],
        protect: false,
        status: 201,
        errors: ['VALIDATION_FAILED', 'EMAIL_TAKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ name: fields.name, email: fields.email, password: fields.newPassword }))
    .output(done.extend({ user: z.object({ id: z.string(), email: z.string(), name: z.string() }) }))
    .mutation(async ({ ctx, input }) => {
      const { id, email, name } = await ctx.accounts.register(
        { name: input.name, email: input.email },
        input.password,
        { clientAddress: ctx.clientAddress(), browser: ctx.browser() },
      );
      ctx.cookies.setBrowser(ctx.browser());
      return {
        ...answer('Registration successful. Please check your email to verify your account.'),
        user: { id, email, name },
      };
    }),

  verifyEmail: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/verify-email',
        summary: 'Confirm an email address with the mailed token',
        description:
          'In another browser than the one that asked for the account, `unproven` lists the login methods of which it is not proven that the owner of the address added them. A password reset removes them, and so does POST /auth/not-me.',
        tags: ['Authentication'],
        protect: false,
        errors: ['INVALID_TOKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(done.extend({ unproven: z.array(unprovenMethod).optional() }))
    .mutation(async ({ ctx, input }) => {
      const unproven = await ctx.accounts.verifyEmail(input.token, {
        clientAddress: ctx.clientAddress(),
        browser: ctx.browser(),
      });
      return {
        ...answer('Your email is verified. You can log in now.'),
        ...(unproven.length > 0 && { unproven: unproven.map(toUnprovenMethod) }),
      };
    }),

  resendVerification: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/resend-verification',
        summary: 'Send the verification mail again',
        description: 'The answer is the same whether there is such an account or not.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ email: fields.email }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.resendVerification(input.email, ctx.clientAddress());
      // So that the browser is recognized for as long as the newer link works.
      ctx.cookies.setBrowser(ctx.browser());
      return answer('If this address waits for its verification, a new link is on its way.');
    }),

  login: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/login',
        summary: 'Log in with email and password',
        description: 'Sets the session cookie `auth_session`. A session that the request carries ends.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: ['VALIDATION_FAILED', 'INVALID_CREDENTIALS', 'EMAIL_NOT_VERIFIED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ email: fields.email, password: fields.password }))
    .output(
      done.extend({
        user: z.object({ id: z.string(), email: z.string(), name: z.string(), provider: z.string() }),
      }),
    )
    .mutation(async ({ ctx, input }) => {
      const login = await ctx.accounts.logIn(input, loginRequest(ctx));
      const { id, email, name, provider } = login.user;
      ctx.cookies.setSession(login);
      ctx.setLogUser(id);
      return { ...answer('You are logged in.'), user: { id, email, name, provider } };
    }),

  logout: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/logout',
        summary: 'End the current session',
        tags: ['Authentication'],
        setsCookie: true,
        protect: true,
        errors: [],
      },
    })
    .output(done)
    .mutation(async ({ ctx }) => {
      const session = await currentSession(ctx);
      // The cookie is cleared only after the session has ended, so that a failed logout can be tried again.
      if (session && ctx.sessionToken) await ctx.accounts.sessions.end(ctx.sessionToken);
      ctx.cookies.clearSession();
      if (!session) throw new ServiceError('UNAUTHENTICATED');
      return answer('You are logged out.');
    }),

  logoutAll: sessionProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/logout-all',
        summary: 'End every session of the logged-in user, on all devices',
        tags: ['Authentication'],
        setsCookie: true,
        protect: true,
        errors: [],
      },
    })
    .output(done)
    .mutation(async ({ ctx }) => {
      await ctx.accounts.sessions.endAll(ctx.session.user.id);
      ctx.cookies.clearSession();
      return answer('You are logged out on all devices.');
    }),

  forgotPassword: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/forgot-password',
        summary: 'Request a mail with a link to set a new password',
        description: 'The answer is the same whether there is such an account or not. A newer link replaces the older.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ email: fields.email }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.forgotPassword(input.email, ctx.clientAddress());
      return answer('If an account exists for this email, a password reset link has been sent.');
    }),

  resetPassword: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/reset-password',
        summary: 'Set a new password with the mailed token',
        description: 'Ends every session of the user, and opens none. A refused password leaves the token usable.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'INVALID_TOKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken, email: fields.mailedEmail, password: fields.newPassword }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.resetPassword({ token: input.token, email: input.email }, input.password, ctx.clientAddress());
      return answer('Your password is changed. You can log in with it now.');
    }),
});
