import { z } from 'zod';
import { type ErrorCode, ServiceError } from '../server/errors.ts';
import type { Context } from './context.ts';
import { answer, done } from './done.ts';
import * as fields from './fields.ts';
import { answerLogin, loggedIn } from './login-answer.ts';
import { callerOf, currentSession, loginRequest, publicProcedure, sessionProcedure } from './trpc.ts';
import * as webauthn from './webauthn.ts';

/** Whose passkeys are asked for; undefined: anybody's. */
const ownerOf: Record<'login' | 'second-factor' | 'reauthenticate', (ctx: Context) => Promise<string | undefined>> = {
  login: async () => undefined,
  'second-factor': async (ctx) => (await ctx.accounts.findPendingUser(ctx.pendingLogin, callerOf(ctx))).id,
  async reauthenticate(ctx) {
    const session = await currentSession(ctx);
    if (!session) throw new ServiceError('UNAUTHENTICATED');
    return session.user.id;
  },
};

/** After these refusals no login waits any more. */
const ended: ErrorCode[] = ['UNAUTHENTICATED', 'ACCOUNT_BLOCKED'];

/** Of the router `auth`: what takes a credential, for a new session or in one. */
export const logins = {
  login: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/login',
        summary: 'Log in with email and password',
        description:
          'Sets the session cookie `auth_session`. A session that the request carries ends. For a user with an authenticator app it is the first step: SECOND_FACTOR_REQUIRED sets the cookie `auth_pending`, `details.methods` lists what can be given next (`totp`, `recovery`, `passkey`, with commas between them), and POST /auth/second-factor completes the login.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: [
          'VALIDATION_FAILED',
          'INVALID_CREDENTIALS',
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
    .mutation(async ({ ctx, input }) => answerLogin(ctx, await ctx.accounts.logIn(input, loginRequest(ctx)))),

  beginPasskey: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/passkey/options',
        summary: 'Begin a login by passkey, the second step of a login, or a reauthentication',
        description:
          'Answers the options for `navigator.credentials.get`, whose challenge can be answered once, within five minutes, by this browser: sets its cookie `auth_browser`. For `second-factor` a login must wait for it (cookie `auth_pending`), for `reauthenticate` there must be a session: then only the passkeys of that user are asked for.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'UNAUTHENTICATED', 'ACCOUNT_BLOCKED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ purpose: z.enum(['login', 'second-factor', 'reauthenticate']).optional() }).optional())
    .output(webauthn.requestOptions)
    .mutation(async ({ ctx, input }) => {
      const purpose = input?.purpose ?? 'login';
      const userId = await ownerOf[purpose](ctx);
      const options = await ctx.accounts.beginPasskey({ purpose, browser: ctx.browser(), userId }, ctx.clientAddress());
      ctx.cookies.setBrowser(ctx.browser());
      return options;
    }),

  finishPasskey: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/passkey',
        summary: 'Log in with a passkey',
        description:
          'Takes what `navigator.credentials.get` has answered, as JSON. Sets the session cookie `auth_session`. A session that the request carries ends. Attempts count as logins do.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: ['VALIDATION_FAILED', 'INVALID_CREDENTIALS', 'ACCOUNT_DELETED', 'ACCOUNT_BLOCKED', 'RATE_LIMITED'],
      },
    })
    .input(webauthn.assertionResponse)
    .output(loggedIn)
    .mutation(async ({ ctx, input }) =>
      answerLogin(ctx, await ctx.accounts.logInByPasskey(input, ctx.browser(), loginRequest(ctx))),
    ),

  secondFactor: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/second-factor',
        summary: 'Complete a login with a code of the authenticator app, a recovery code or a passkey',
        description:
          'Takes one of them, and the cookie `auth_pending` that the first step has set for ten minutes; answers as a login does. Each code works once. The fifth wrong one ends the login, and codes are limited per user. UNAUTHENTICATED where no login waits.',
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
      const outcome = await ctx.accounts
        .giveSecondFactor(ctx.pendingLogin, input, { ...loginRequest(ctx), browser: ctx.browser() })
        .catch((error: unknown) => {
          if (error instanceof ServiceError && ended.includes(error.code)) ctx.cookies.clearPending();
          throw error;
        });
      if (outcome.result === 'logged-in' || outcome.isOver) ctx.cookies.clearPending();
      if (outcome.result === 'wrong-code') throw new ServiceError('INVALID_CODE');
      return answerLogin(ctx, outcome);
    }),

  reauthenticate: sessionProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/reauthenticate',
        summary: 'Give the password, a code of the authenticator app or a passkey again in the current session',
        description:
          'For the ten minutes that follow, the session may make the changes that are otherwise refused with REAUTHENTICATION_REQUIRED. Takes one of them; passwords, which are refused with SECOND_FACTOR_REQUIRED where there is an authenticator app, count as logins do; codes are limited per user.',
        tags: ['Authentication'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'INVALID_CREDENTIALS', 'INVALID_CODE', 'SECOND_FACTOR_REQUIRED', 'RATE_LIMITED'],
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
      await ctx.accounts.reauthenticate(ctx.session, input, { ...callerOf(ctx), browser: ctx.browser() });
      return answer('Thank you, it is you.');
    }),
};
