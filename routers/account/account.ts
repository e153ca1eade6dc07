import { z } from 'zod';
import type { ListedMethod } from '../../server/accounts/credentials/index.ts';
import { answerLogin, loggedIn, setRotated } from '../auth/login-answer.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { listedMethod, toListedMethod } from '../schemas/listed-method.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import {
  attemptProcedure,
  callerOf,
  deviceRequest,
  loginRequest,
  ownSession,
  publicProcedure,
  recentProcedure,
  router,
  userProcedure,
} from '../trpc.ts';
import { accountExport } from './export.ts';

const messages = {
  deleted: 'The account was deleted.',
  secured: 'Unconfirmed login methods were removed, and you were logged out on all devices.',
  locked:
    'You were logged out on all devices, and the password no longer works. A link to set a new one is on its way to you.',
};

/** Login methods added before the disowned act are kept; their user decides about them. */
const withKept = done.extend({ kept: z.array(listedMethod).optional() });
const listKept = (kept: ListedMethod[]) => (kept.length > 0 ? { kept: kept.map(toListedMethod) } : {});

export const account = router({
  changePassword: userProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/account/password',
        summary: 'Set a new password',
        description:
          'Requires the current password if there is one; the new one must differ (rule `same_as_current`). Without one, and with an authenticator app, requires a session in which a credential was given in the last ten minutes. Attempts count as logins. Ends all other sessions; this one continues with a new token, set as session cookie. Only this device stays known.',
        tags: ['Account'],
        protect: true,
        setsCookie: true,
        errors: ['VALIDATION_FAILED', 'INVALID_CREDENTIALS', 'FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ currentPassword: fields.password.optional(), newPassword: fields.newPassword }))
    .output(done)
    .mutation(async ({ ctx, input: { currentPassword, newPassword } }) => {
      const passwords = { currentPassword, newPassword };
      setRotated(
        ctx,
        await ctx.accounts.lifecycle.passwordChange.changePassword(ownSession(ctx), passwords, deviceRequest(ctx)),
      );
      return answer('Your password was changed. All other devices were logged out.');
    }),

  changeEmail: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/account/email',
        summary: 'Request a change of the email address',
        description:
          'Mails a link to the new address, which works for 24 hours in a session of this account and in this browser, by the cookie `auth_browser`; nothing changes before. The answer is the same for an address that is another’s. Requires a session with a credential given in the last ten minutes.',
        tags: ['Account'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ email: fields.email }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      const browser = ctx.browser();
      await ctx.accounts.lifecycle.emailChange.changeEmail(ctx.session, input.email, {
        caller: callerOf(ctx),
        browser,
      });
      ctx.cookies.setBrowser(browser);
      return answer('We sent a link to the new email. Open it in this browser to confirm the change.');
    }),

  confirmEmail: userProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/confirm-email',
        summary: 'Confirm the new email address with the mailed token',
        description:
          'In a session of the account, and in the browser that asked for the change: in another it is FORBIDDEN, and the token stays usable. The former address is mailed a link that undoes the change for 7 days, in which it stays the user’s.',
        tags: ['Account'],
        protect: true,
        errors: ['INVALID_TOKEN', 'FORBIDDEN', 'EMAIL_TAKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.lifecycle.emailChange.confirmEmail(ctx.session, input.token, {
        caller: callerOf(ctx),
        browser: ctx.browser(),
      });
      return answer('Your email was changed.');
    }),

  undoEmailChange: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/undo-email-change',
        summary: 'Restore the former email address with the token mailed to it',
        description:
          'Works even after further changes. Ends every session. Removes the password and the login methods added since seven days before the request for the change: set a new password by POST /auth/forgot-password. `kept` lists the login methods added before.',
        tags: ['Account'],
        protect: false,
        errors: ['INVALID_TOKEN', 'EMAIL_TAKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(withKept)
    .mutation(async ({ ctx, input }) => {
      const { kept } = await ctx.accounts.lifecycle.emailChange.undoEmailChange(input.token, callerOf(ctx));
      return {
        ...answer('Your email was restored, and you were logged out on all devices. Please set a new password.'),
        ...listKept(kept),
      };
    }),

  notMe: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/not-me',
        summary: 'Disown the account, or the login, of a mailed token',
        description:
          'With the token of the verification mail, used or not, for an owner of the address who did not register: removes unproven login methods and ends all sessions; an account without a proven login method is deleted. With the token of a mail about a login from a new device, or about a new login method, once: ends all sessions, removes the password, the login method of such a login and those added since the first event that such a mail reported, and mails a password reset link. `kept` lists the login methods added before.',
        tags: ['Authentication'],
        protect: false,
        errors: ['INVALID_TOKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(withKept)
    .mutation(async ({ ctx, input }) => {
      const { outcome, kept } = await ctx.accounts.lifecycle.notMe.disown(input.token, callerOf(ctx));
      return { ...answer(messages[outcome]), ...listKept(kept) };
    }),

  export: accountExport,

  delete: recentProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/account',
        summary: 'Delete the account of the logged-in user',
        description:
          'Ends every session and hides the user. Until `removedAfter` the account can be restored (POST /auth/restore); after that all stored data of the user is removed.',
        tags: ['Account'],
        protect: true,
        setsCookie: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'LAST_ADMINISTRATOR', 'RATE_LIMITED'],
      },
    })
    .output(done.extend({ deletedAt: unixSeconds, removedAfter: unixSeconds }))
    .mutation(async ({ ctx }) => {
      const { deletedAt, removedAfter } = await ctx.accounts.lifecycle.deletion.deleteAccount(
        ctx.session,
        callerOf(ctx),
      );
      ctx.cookies.clearSession();
      return {
        ...answer('Your account was deleted. It can be restored for a while.'),
        deletedAt: toUnixSeconds(deletedAt),
        removedAfter: toUnixSeconds(removedAfter),
      };
    }),

  restore: attemptProcedure
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
          'CHALLENGE_REQUIRED',
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
      answerLogin(
        ctx,
        await ctx.accounts.login.password.restore(input, loginRequest(ctx)),
        'Your account was restored.',
      ),
    ),
});
