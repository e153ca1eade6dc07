import { z } from 'zod';
import { ServiceError } from '../../server/errors.ts';
import type { Context } from '../context.ts';
import { returnToOutput, storedReturn } from '../return-to.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { attemptProcedure, loginRequest, publicProcedure } from '../trpc.ts';
import { answerLogin, loggedIn } from './login-answer.ts';

const emailCodeOf = (ctx: Context) => {
  const { emailCode } = ctx.accounts.lifecycle;
  if (!emailCode) throw new ServiceError('NOT_FOUND');
  return emailCode;
};

/** The procedures of the router `auth` that log in by a mailed code. */
export const emailCodes = {
  beginEmailCode: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/email-code',
        summary: 'Request a mail with a code that logs in',
        description:
          'The response is the same for every address, and beyond the limit of the inbox, when no mail is sent. Sets the cookie `auth_pending`: the code works only in this browser, for ten minutes, and a newer one replaces it. An address without an account is mailed a code too if it may have an account, otherwise that it may not. NOT_FOUND unless `EMAIL_CODES` is on.',
        tags: ['Authentication'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'CHALLENGE_REQUIRED', 'NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ email: fields.email }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      const token = await emailCodeOf(ctx).begin(input.email, ctx.pendingLogin, loginRequest(ctx));
      ctx.cookies.setPending(token);
      return answer('A mail with a code is on its way, if it can be sent.');
    }),

  finishEmailCode: attemptProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/email-code/finish',
        summary: 'Log in with the mailed code',
        description:
          'Takes the code, and the cookie `auth_pending` of POST /auth/email-code. Responds like a login, and asks for a second factor like one. Without an account, creates a verified one, if the address may have one (REGISTRATION_CLOSED); `returnTo` is that of its invitation. The code proves the inbox: login methods that are not proven to be the owner’s are removed. Attempts count as logins, wrong codes per account too; the fifth wrong one ends the code. UNAUTHENTICATED without a pending code, and after everything that ends all sessions. NOT_FOUND unless `EMAIL_CODES` is on.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: [
          'VALIDATION_FAILED',
          'UNAUTHENTICATED',
          'INVALID_CODE',
          'REGISTRATION_CLOSED',
          'ACCOUNT_DELETED',
          'ACCOUNT_BLOCKED',
          'SECOND_FACTOR_REQUIRED',
          'NOT_FOUND',
          'EMAIL_TAKEN',
          'RATE_LIMITED',
        ],
      },
    })
    .input(z.object({ code: fields.code }))
    .output(loggedIn.extend({ returnTo: returnToOutput }))
    .mutation(async ({ ctx, input }) => {
      const emailCode = emailCodeOf(ctx);
      const request = { ...loginRequest(ctx), browser: ctx.browser() };
      const outcome = await emailCode.finish(ctx.pendingLogin, input.code, request);
      if (outcome.result !== 'wrong-code' || outcome.isOver) ctx.cookies.clearPending();
      if (outcome.result === 'wrong-code') throw new ServiceError('INVALID_CODE');
      return { ...answerLogin(ctx, outcome), ...storedReturn(ctx, outcome.invitedTo) };
    }),
};
