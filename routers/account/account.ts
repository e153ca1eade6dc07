import { z } from 'zod';
import { ServiceError } from '../server/errors.ts';
import { accountExport } from './account-export.ts';
import { answer, done } from './done.ts';
import * as fields from './fields.ts';
import { answerLogin, loggedIn } from './login-answer.ts';
import { callerOf, loginRequest, publicProcedure, recentProcedure, router, sessionProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

const messages = {
  deleted: 'The account is deleted.',
  secured: 'What you did not add is removed from the account, and every device is logged out.',
  locked: 'Every device is logged out, and the password no longer works. A link to set a new one is on its way to you.',
};

export const account = router({
  changePassword: sessionProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/account/password',
        summary: 'Set a new password',
        description:
          'Needs the current password, where the account has one, and otherwise a session in which a credential was given in the last ten minutes. Attempts count as logins do. Ends all other sessions; this one goes on under a new token, in the session cookie that is set.',
        tags: ['Account'],
        protect: true,
        setsCookie: true,
        errors: ['VALIDATION_FAILED', 'INVALID_CREDENTIALS', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ currentPassword: fields.password.optional(), newPassword: fields.newPassword }))
    .output(done)
    .mutation(async ({ ctx, input: { currentPassword, newPassword } }) => {
      const { session, sessionToken: token } = ctx;
      if (token === undefined) throw new ServiceError('UNAUTHENTICATED');
      const passwords = { currentPassword, newPassword };
      ctx.cookies.setSession(await ctx.accounts.changePassword({ session, token }, passwords, callerOf(ctx)));
      return answer('Your password is changed. Every other device is logged out.');
    }),

  changeEmail: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/account/email',
        summary: 'Ask for another email address',
        description:
          'Mails a link to the new address, which works for 24 hours in a session of this account; nothing changes before. The answer is the same for an address that is another’s. Needs a session in which a credential was given in the last ten minutes.',
        tags: ['Account'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ email: fields.email }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.changeEmail(ctx.session, input.email, callerOf(ctx));
      return answer('We sent a link to the new email. Open it and confirm: then it is yours.');
    }),

  confirmEmail: sessionProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/confirm-email',
        summary: 'Confirm the new email address with the mailed token',
        description:
          'In a session of the account. The former address is mailed a link that undoes the change for 7 days, in which it stays the user’s.',
        tags: ['Account'],
        protect: true,
        errors: ['INVALID_TOKEN', 'EMAIL_TAKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.confirmEmail(ctx.session, input.token, callerOf(ctx));
      return answer('Your email is changed.');
    }),

  undoEmailChange: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/undo-email-change',
        summary: 'Put the former email address back with the token mailed to it',
        description:
          'Also after further changes. Ends every session, and removes the password and the identities that were linked since: set a new password by POST /auth/forgot-password.',
        tags: ['Account'],
        protect: false,
        errors: ['INVALID_TOKEN', 'EMAIL_TAKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.undoEmailChange(input.token, callerOf(ctx));
      return answer('Your email is back, and every device is logged out. Please set a new password.');
    }),

  notMe: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/not-me',
        summary: 'Disown the account, or the login, of a mailed token',
        description:
          'Takes the token of the verification mail, used or not, for the owner of an address, who did not ask for the account: removes the login methods that are not proven and ends all sessions; an account without a proven login method is deleted. Takes the token of the mail about a login from a new device, once: ends all sessions, removes the password and the identities that such a login came through, and mails a link to set a new password.',
        tags: ['Authentication'],
        protect: false,
        errors: ['INVALID_TOKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      const outcome = await ctx.accounts.disown(input.token, callerOf(ctx));
      return answer(messages[outcome]);
    }),

  export: accountExport,

  delete: recentProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/account',
        summary: 'Delete the account of the logged-in user',
        description:
          'Ends every session and hides the user. Until `removedAfter` the account can be restored (POST /auth/restore); some time after it everything that is stored about the user is removed.',
        tags: ['Account'],
        protect: true,
        setsCookie: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'LAST_ADMINISTRATOR'],
      },
    })
    .output(done.extend({ deletedAt: unixSeconds, removedAfter: unixSeconds }))
    .mutation(async ({ ctx }) => {
      const { deletedAt, removedAfter } = await ctx.accounts.deleteAccount(ctx.session, callerOf(ctx));
      ctx.cookies.clearSession();
      return {
        ...answer('Your account is deleted. It can be restored for a while.'),
        deletedAt: toUnixSeconds(deletedAt),
        removedAfter: toUnixSeconds(removedAfter),
      };
    }),

  restore: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/restore',
        summary: 'Restore a deleted account, and log in to it',
        description:
          'Until the account is removed. Sets the session cookie `auth_session`. For an account that was not deleted it is a login. Users with an authenticator app go through the second step, as at a login.',
        tags: ['Authentication'],
        setsCookie: true,
        protect: false,
        errors: [
          'VALIDATION_FAILED',
          'INVALID_CREDENTIALS',
          'EMAIL_NOT_VERIFIED',
          'ACCOUNT_BLOCKED',
          'SECOND_FACTOR_REQUIRED',
          'RATE_LIMITED',
        ],
      },
    })
    .input(z.object({ email: fields.email, password: fields.password }))
    .output(loggedIn)
    .mutation(async ({ ctx, input }) =>
      answerLogin(ctx, await ctx.accounts.restore(input, loginRequest(ctx)), 'Your account is restored.'),
    ),
});
