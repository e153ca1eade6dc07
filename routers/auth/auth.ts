import { z } from 'zod';
import type { UnprovenMethod } from '../server/accounts/login-methods.ts';
import { ServiceError } from '../server/errors.ts';
import { answer, done } from './done.ts';
import * as fields from './fields.ts';
import { idp } from './identity-provider.ts';
import { logins } from './logins.ts';
import { callerOf, currentSession, deviceRequest, publicProcedure, router, sessionProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

const unprovenMethod = z.object({
  method: z.string().meta({ description: '`password`, or the name of an identity provider', example: 'password' }),
  addedAt: unixSeconds,
});
const toUnprovenMethod = ({ method, addedAt }: UnprovenMethod) => ({ method, addedAt: toUnixSeconds(addedAt) });

export const auth = router({
  idp,

  register: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/register',
        summary: 'Create an account',
        description:
          'Sends a mail with a link that verifies the address, after which the account can be used. Sets the cookie `auth_browser`, which recognizes the browser when the link is opened. With the token of an invitation the address is verified at once. Refused with REGISTRATION_CLOSED where the service does not let the address in, whether it has an account or not. Where the service has terms (`TERMS_URL`, `PRIVACY_URL`) `acceptTerms` must be `true`, and it is stored which version was accepted: the current one, and where `termsVersion` says that another was shown, the rule of `acceptTerms` is `terms_changed`.',
        tags: ['Authentication'],
        protect: false,
        status: 201,
        errors: ['VALIDATION_FAILED', 'INVALID_TOKEN', 'REGISTRATION_CLOSED', 'EMAIL_TAKEN', 'RATE_LIMITED'],
      },
    })
    .input(
      z.object({
        name: fields.name,
        email: fields.email,
        password: fields.newPassword,
        acceptTerms: fields.acceptTerms,
        termsVersion: fields.termsVersion
          .optional()
          .meta({ description: 'The version of the terms that the user was shown', example: '2026-11' }),
        invitation: fields.mailedToken
          .optional()
          .meta({ description: 'The token of a mailed invitation, which is for this address only' }),
      }),
    )
    .output(done.extend({ user: z.object({ id: z.string(), email: z.string(), name: z.string() }) }))
    .mutation(async ({ ctx, input }) => {
      const { invitation, ...registrant } = input;
      if (invitation !== undefined) {
        const { id, email, name } = await ctx.accounts.registerInvited(registrant, invitation, callerOf(ctx));
        return { ...answer('Registration successful. You can log in now.'), user: { id, email, name } };
      }
      const { id, email, name } = await ctx.accounts.register(registrant, {
        caller: callerOf(ctx),
        browser: ctx.browser(),
      });
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
        caller: callerOf(ctx),
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
      await ctx.accounts.resendVerification(input.email, callerOf(ctx));
      // So that the browser is recognized for as long as the newer link works.
      ctx.cookies.setBrowser(ctx.browser());
      return answer('If this address waits for its verification, a new link is on its way.');
    }),

  ...logins,

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
      if (session && ctx.sessionToken) await ctx.accounts.sessions.end(ctx.sessionToken, callerOf(ctx));
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
      await ctx.accounts.sessions.endAll(ctx.session.user.id, callerOf(ctx));
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
      await ctx.accounts.forgotPassword(input.email, callerOf(ctx));
      return answer('If an account exists for this email, a password reset link has been sent.');
    }),

  resetPassword: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/reset-password',
        summary: 'Set a new password with the mailed token',
        description:
          'Takes the token of the mailed link, and the address that the link names. Ends every session of the user, and opens none. Of the devices that the user has logged in on only this one stays known, by the cookie `auth_device`. A refused password leaves the token usable.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'INVALID_TOKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken, email: fields.mailedEmail, password: fields.newPassword }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      const { token, email, password } = input;
      ctx.cookies.setDevice(await ctx.accounts.resetPassword({ token, email }, password, deviceRequest(ctx)));
      return answer('Your password is changed. You can log in with it now.');
    }),
});
