import { z } from 'zod';
import { ServiceError } from '../../server/errors.ts';
import { admitReturn, returnToOfLink, returnToOutput, storedReturn } from '../return-to.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { listedMethod, toListedMethod } from '../schemas/listed-method.ts';
import { fieldsIn, writtenFields } from '../schemas/profile-fields.ts';
import { callerOf, currentSession, deviceRequest, publicProcedure, router, userProcedure } from '../trpc.ts';
import { emailCodes } from './email-codes.ts';
import { endSession } from './end-session.ts';
import { idp } from './identity-provider.ts';
import { logins } from './logins.ts';

export const auth = router({
  idp,

  register: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/register',
        summary: 'Create an account',
        description:
          'Mails a link that verifies the address; then the account can be used. Sets the cookie `auth_browser`, which recognizes the browser when the link is opened. The token of an invitation verifies the address at once. REGISTRATION_CLOSED if the service does not admit the address, with or without an account. If the service has terms (`TERMS_URL`, `PRIVACY_URL`), `acceptTerms` must be `true`, and the current version is stored; if `termsVersion` is another one, the rule of `acceptTerms` is `terms_changed`. `fields` must have the required fields of `PROFILE_FIELDS`; FIELD_TAKEN if another account has the value of a unique one.',
        tags: ['Authentication'],
        protect: false,
        status: 201,
        errors: [
          'VALIDATION_FAILED',
          'INVALID_TOKEN',
          'CHALLENGE_REQUIRED',
          'REGISTRATION_CLOSED',
          'EMAIL_TAKEN',
          'FIELD_TAKEN',
          'RATE_LIMITED',
        ],
      },
    })
    .input(
      z.object({
        name: fields.name,
        email: fields.email,
        password: fields.newPassword,
        fields: writtenFields('owner', { isNew: true }),
        acceptTerms: fields.acceptTerms,
        termsVersion: fields.termsVersion
          .optional()
          .meta({ description: 'The version of the terms that the user was shown', example: '2026-11' }),
        invitation: fields.mailedToken
          .optional()
          .meta({ description: 'The token of an invitation mailed to this address' }),
        returnTo: returnToOfLink,
      }),
    )
    .output(
      done.extend({
        user: z.object({ id: z.string(), email: z.string(), name: z.string() }),
        returnTo: returnToOutput,
      }),
    )
    .mutation(async ({ ctx, input }) => {
      const { password, acceptTerms, termsVersion, invitation } = input;
      const own = fieldsIn(ctx, input.fields, { write: 'owner', isNew: true });
      const terms = { acceptTerms, termsVersion };
      const registrant = { name: input.name, email: input.email, password, fields: own, ...terms };
      const returnTo = admitReturn(ctx, input.returnTo);
      if (invitation !== undefined) {
        const { user, deviceCookie, ...link } = await ctx.accounts.lifecycle.registration.registerInvited(
          registrant,
          invitation,
          deviceRequest(ctx),
        );
        const { id, email, name } = user;
        ctx.cookies.setDevice(deviceCookie);
        return {
          ...answer('Registration successful. You can now log in.'),
          user: { id, email, name },
          ...storedReturn(ctx, link.returnTo),
        };
      }
      const { id, email, name } = await ctx.accounts.lifecycle.registration.register(registrant, {
        caller: callerOf(ctx),
        browser: ctx.browser(),
        returnTo,
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
        summary: 'Confirm an email address with the mailed token or code',
        description:
          'Takes the token of the mailed link, or the code beside it. The code works only in the browser that registered (cookie `auth_browser`), for the latest account that was registered in it; five guesses are looked at. In a browser other than the one that registered, `unproven` lists the login methods that the owner of the address may not have added. A password reset or POST /auth/not-me removes them. In the browser that registered, sets the cookie `auth_device`: a login there is not reported by mail.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'INVALID_TOKEN', 'INVALID_CODE', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken.optional(), code: fields.code.optional() }))
    .output(done.extend({ unproven: z.array(listedMethod).optional(), returnTo: returnToOutput }))
    .mutation(async ({ ctx, input }) => {
      const { token, code } = input;
      const { verification } = ctx.accounts.lifecycle;
      const confirming = { request: deviceRequest(ctx), browser: ctx.browser() };
      if (token === undefined && code === undefined) throw new ServiceError('INVALID_TOKEN');
      const { unproven, deviceCookie, returnTo } = await (token === undefined
        ? verification.verifyCode(code ?? '', confirming)
        : verification.verifyEmail(token, confirming));
      if (deviceCookie !== undefined) ctx.cookies.setDevice(deviceCookie);
      return {
        ...answer('Your email is verified. You can now log in.'),
        ...(unproven.length > 0 && { unproven: unproven.map(toListedMethod) }),
        ...storedReturn(ctx, returnTo),
      };
    }),

  resendVerification: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/resend-verification',
        summary: 'Send the verification mail again',
        description: 'The response is the same with or without such an account.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'CHALLENGE_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ email: fields.email, returnTo: returnToOfLink }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      const returnTo = admitReturn(ctx, input.returnTo);
      await ctx.accounts.lifecycle.verification.resendVerification(input.email, returnTo, callerOf(ctx));
      // The browser is recognized for as long as the newer link works.
      ctx.cookies.setBrowser(ctx.browser());
      return answer('If this email is not verified yet, a new link is on its way.');
    }),

  ...logins,
  ...emailCodes,

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
      await endSession(ctx, session);
      if (!session) throw new ServiceError('UNAUTHENTICATED');
      return answer('You are logged out.');
    }),

  logoutAll: userProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/logout-all',
        summary: 'End every session of the logged-in user, on all devices',
        description: 'Makes all other devices of the user unknown; this one stays known by the cookie `auth_device`.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: true,
        errors: ['FORBIDDEN'],
      },
    })
    .output(done)
    .mutation(async ({ ctx }) => {
      const ended = await ctx.accounts.sessions.endAll(ctx.session.user.id, deviceRequest(ctx));
      ctx.cookies.clearSession();
      if (ended?.deviceCookie) ctx.cookies.setDevice(ended.deviceCookie);
      return answer('You are logged out on all devices.');
    }),

  forgotPassword: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/forgot-password',
        summary: 'Request a mail with a link to set a new password',
        description:
          'The response is the same with or without such an account, for any text, and beyond the limit, when no mail is sent. A newer link replaces the older one.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'CHALLENGE_REQUIRED'],
      },
    })
    .input(z.object({ email: fields.anyEmail, returnTo: returnToOfLink }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      const returnTo = admitReturn(ctx, input.returnTo);
      await ctx.accounts.lifecycle.passwordReset.forgotPassword(input.email, returnTo, callerOf(ctx));
      return answer('If an account exists for this email, a password reset link has been sent.');
    }),

  resetPassword: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/reset-password',
        summary: 'Set a new password with the mailed token',
        description:
          'Takes token and address of the mailed link. Ends every session of the user, and opens none. Makes all other devices of the user unknown; this one stays known by the cookie `auth_device`. The token is checked before the password, and a refused password leaves it usable.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'INVALID_TOKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken, email: fields.mailedEmail }))
    .use(async ({ ctx, input, next }) => {
      await ctx.accounts.lifecycle.passwordReset.checkResetToken(input, ctx.clientAddress());
      return next();
    })
    .input(z.object({ password: fields.newPassword }))
    .output(done.extend({ returnTo: returnToOutput }))
    .mutation(async ({ ctx, input }) => {
      const { token, email, password } = input;
      const { deviceCookie, returnTo } = await ctx.accounts.lifecycle.passwordReset.resetPassword(
        { token, email },
        password,
        deviceRequest(ctx),
      );
      ctx.cookies.setDevice(deviceCookie);
      return { ...answer('Your password was changed. You can now log in with it.'), ...storedReturn(ctx, returnTo) };
    }),
});
