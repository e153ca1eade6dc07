import { z } from 'zod';
import { type ErrorCode, ServiceError } from '../../server/errors.ts';
import type { Context } from '../context.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import * as webauthn from '../schemas/webauthn.ts';
import {
  attemptProcedure,
  callerOf,
  currentSession,
  loginRequest,
  publicProcedure,
  requireUser,
  userProcedure,
} from '../trpc.ts';
import { answerLogin, loggedIn } from './login-answer.ts';

/** The user whose passkeys are allowed; undefined allows those of any user. */
const ownerOf: Record<'login' | 'second-factor' | 'reauthenticate', (ctx: Context) => Promise<string | undefined>> = {
  login: async () => undefined,
  'second-factor': async (ctx) => (await ctx.accounts.login.steps.findPendingUser(ctx.pendingLogin, callerOf(ctx))).id,
  async reauthenticate(ctx) {
    const session = await currentSession(ctx);
    if (!session) throw new ServiceError('UNAUTHENTICATED');
    requireUser(session);
    return session.user.id;
  },
};

/** After these refusals the pending login has ended. */
const ended: ErrorCode[] = ['UNAUTHENTICATED', 'ACCOUNT_BLOCKED'];

/** The procedures of the router `auth` that take a credential, for a new or an existing session. */
export const logins = {
  login: attemptProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/login',
        summary: 'Log in with email and password',
        description:
          'Sets the session cookie `auth_session`. Ends the session of the request. For a user with an authenticator app it is the first step: SECOND_FACTOR_REQUIRED sets the cookie `auth_pending`, `details.methods` lists the possible second factors (`totp`, `recovery`, `passkey`, separated by commas), and POST /auth/second-factor completes the login.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: [
          'VALIDATION_FAILED',
          'INVALID_CREDENTIALS',
          'CHALLENGE_REQUIRED',
          'EMAIL_NOT_VERIFIED',
          'ACCOUNT_DELETED',
          'ACCOUNT_BLOCKED',
          'SECOND_FACTOR_REQUIRED',
          'RATE_LIMITED',
        ],
      },
    })
    .input(z.object({ email: fields.email, password: fields.password }))
    .output(loggedIn)
    .mutation(async ({ ctx, input }) =>
      answerLogin(ctx, await ctx.accounts.login.password.logIn(input, loginRequest(ctx))),
    ),

  beginPasskey: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/passkey/options',
        summary: 'Begin a login by passkey, the second step of a login, or a reauthentication',
        description:
          'Returns the options for `navigator.credentials.get`. The challenge is valid once, for five minutes, in this browser: sets its cookie `auth_browser`. `second-factor` requires a pending login (cookie `auth_pending`), `reauthenticate` a session: both allow only the passkeys of that user.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: [
          'VALIDATION_FAILED',
          'UNAUTHENTICATED',
          'FORBIDDEN',
          'INSUFFICIENT_SCOPE',
          'OTHER_USER',
          'ACCOUNT_BLOCKED',
          'RATE_LIMITED',
        ],
      },
    })
    .input(z.object({ purpose: z.enum(['login', 'second-factor', 'reauthenticate']).optional() }).optional())
    .output(webauthn.requestOptions)
    .mutation(async ({ ctx, input }) => {
      const purpose = input?.purpose ?? 'login';
      const userId = await ownerOf[purpose](ctx);
      const options = await ctx.accounts.login.passkey.beginPasskey(
        { purpose, browser: ctx.browser(), userId },
        ctx.clientAddress(),
      );
      ctx.cookies.setBrowser(ctx.browser());
      return options;
    }),

  finishPasskey: attemptProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/passkey',
        summary: 'Log in with a passkey',
        description:
          'Takes the result of `navigator.credentials.get` as JSON. Sets the session cookie `auth_session`. Ends the session of the request. Attempts count as logins.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: ['VALIDATION_FAILED', 'INVALID_CREDENTIALS', 'ACCOUNT_DELETED', 'ACCOUNT_BLOCKED', 'RATE_LIMITED'],
      },
    })
    .input(webauthn.assertionResponse)
    .output(loggedIn)
    .mutation(async ({ ctx, input }) =>
      answerLogin(ctx, await ctx.accounts.login.passkey.logIn(input, ctx.browser(), loginRequest(ctx))),
    ),

  secondFactor: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/second-factor',
        summary: 'Complete a login with a code of the authenticator app, a recovery code or a passkey',
        description:
          'Takes one of them, and the cookie `auth_pending`, which the first step sets for ten minutes. Responds like a login. Each code works once. The fifth wrong one ends the login, and codes are limited per user. UNAUTHENTICATED without a pending login.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: ['VALIDATION_FAILED', 'UNAUTHENTICATED', 'INVALID_CODE', 'ACCOUNT_BLOCKED', 'RATE_LIMITED'],
      },
    })
    .input(
      fields.oneOf({
        code: fields.code,
        recoveryCode: fields.recoveryCode,
        passkey: webauthn.assertionResponse,
      }),
    )
    .output(loggedIn)
    .mutation(async ({ ctx, input }) => {
      const outcome = await ctx.accounts.login.steps
        .giveSecondFactor(ctx.pendingLogin, input, { ...loginRequest(ctx), browser: ctx.browser() })
        .catch((error: unknown) => {
          if (error instanceof ServiceError && ended.includes(error.code)) ctx.cookies.clearPending();
          throw error;
        });
      if (outcome.result === 'logged-in' || outcome.isOver) ctx.cookies.clearPending();
      if (outcome.result === 'wrong-code') throw new ServiceError('INVALID_CODE');
      return answerLogin(ctx, outcome);
    }),

  reauthenticate: userProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/reauthenticate',
        summary: 'Reauthenticate the current session with the password, a code of the authenticator app or a passkey',
        description:
          'For the next ten minutes the session may make the changes that are otherwise refused with REAUTHENTICATION_REQUIRED. Takes one of the three. Passwords count as logins, and are refused with SECOND_FACTOR_REQUIRED if there is an authenticator app; codes are limited per user.',
        tags: ['Authentication'],
        protect: true,
        errors: [
          'VALIDATION_FAILED',
          'INVALID_CREDENTIALS',
          'INVALID_CODE',
          'FORBIDDEN',
          'SECOND_FACTOR_REQUIRED',
          'RATE_LIMITED',
        ],
      },
    })
    .input(
      fields.oneOf({
        password: fields.password,
        code: fields.code,
        passkey: webauthn.assertionResponse,
      }),
    )
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.login.reauthentication.reauthenticate(ctx.session, input, {
        ...callerOf(ctx),
        browser: ctx.browser(),
      });
      return answer('Your identity is confirmed.');
    }),
};
