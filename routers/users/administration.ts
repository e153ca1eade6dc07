import { z } from 'zod';
import { roles } from '../../entities/index.ts';
import {
  type FoundUser,
  isListCursor,
  listOf,
  type ManagedUser,
  sorts,
  standings,
} from '../../server/accounts/administration/index.ts';
import { isSearchCursor, rule, toListed } from '../../server/accounts/users/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { loggedIn } from '../auth/login-answer.ts';
import { answer, done } from '../schemas/done.ts';
import { invalidCursor, MAX_PAGE, pageOf, uuidPage } from '../schemas/page.ts';
import { fieldsIn, readFields, writtenFields } from '../schemas/profile-fields.ts';
import { toUnixSeconds, toUnixSecondsOrNull, unixSeconds } from '../schemas/unix-seconds.ts';
import { eventPage, toEventPage } from '../security/activity.ts';
import { listed as listedIdentity, toListed as toListedIdentity } from '../security/identities.ts';
import { listed as listedSession, toListed as toListedSession } from '../security/sessions.ts';
import { administratorOf, adminProcedure, type Meta, ownSession, recentAdminProcedure, router } from '../trpc.ts';
import { listed as listedUpload, toListed as toListedUpload } from '../uploads/stored-uploads.ts';
import { isUserId, listed, listFields, publicUser, userId } from './users.ts';

const UPLOADS_SHOWN = 20;

const notFound = () => new ServiceError('NOT_FOUND', { message: 'User not found' });

/** The id of a user; malformed ids match no user. */
const ofUser = z.object({
  id: userId.refine((id) => {
    if (!isUserId(id)) throw notFound();
    return true;
  }),
});

const maybeTime = (description: string) => z.int().nullable().meta({ description, example: 1_700_000_000 });

const managed = {
  role: z.enum(roles),
  emailVerified: z.boolean(),
  blockedAt: maybeTime('Unix seconds; null for a user who is not blocked'),
  deletedAt: maybeTime('Unix seconds; null for a user who is not being deleted'),
};
const managedUser = listed
  .extend({
    ...managed,
    lastLoginAt: maybeTime('Unix seconds; null if there was no login, or it is not stored any more'),
  })
  .meta({ id: 'ManagedUser' });
const managedAccount = publicUser
  .extend({ ...managed, fields: readFields('administrators') })
  .meta({ id: 'ManagedAccount' });

const toManaged = ({ role, emailVerified, blockedAt, deletedAt }: ManagedUser) => ({
  role,
  emailVerified,
  blockedAt: toUnixSecondsOrNull(blockedAt),
  deletedAt: toUnixSecondsOrNull(deletedAt),
});

const toFound = (user: FoundUser) => ({
  ...toListed(user),
  ...toManaged(user),
  lastLoginAt: toUnixSecondsOrNull(user.lastLoginAt),
});

const namesOf = <Name extends string>(lists: Record<Name, unknown>) => Object.keys(lists) as [Name, ...Name[]];

/** A page of all users, of those of one standing, or of those that match `q`. */
const findInput = z
  .object({
    ...listFields,
    standing: z.enum(namesOf(standings)).optional().meta({
      description: 'Only administrators, or users who are unverified, blocked or being deleted. Not with `q` or `sort`',
    }),
    sort: z.enum(namesOf(sorts)).optional().meta({
      description: 'The order of all users; a minus means descending. Not with `q`, which has an order of its own',
    }),
  })
  .refine(({ q, standing, sort }) => [q, standing, sort].filter(Boolean).length <= 1, {
    path: ['sort'],
    ...rule('exclusive', 'Only one of q, standing and sort is allowed'),
  })
  .refine(
    ({ cursor, q, ...list }) =>
      cursor === undefined ||
      (q ? isSearchCursor(cursor, q) : listOf(list).by === 'id' ? isUserId(cursor) : isListCursor(cursor, list)),
    { path: ['cursor'], ...invalidCursor },
  )
  .optional();

/** The contract of an action on the user in the path. */
const act = (
  act: string,
  summary: string,
  { description = '', errors = [] }: { description?: string; errors?: NonNullable<Meta['openapi']>['errors'] } = {},
) =>
  recentAdminProcedure.meta({
    openapi: {
      method: 'POST',
      path: `/api/users/{id}/${act}`,
      summary: `${summary} (administrators)`,
      description: `${description}${description && ' '}Requires a session with a credential given in the last ten minutes.`,
      tags: ['Users'],
      protect: true,
      errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'RATE_LIMITED', ...errors],
    },
  });

/** The administration of users. Part of the router `users`. */
export const userAdministration = router({
  find: adminProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/find',
        summary: 'List all users, newest first: unverified, blocked and deleted ones too (administrators)',
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'VALIDATION_FAILED'],
      },
    })
    .input(findInput)
    .output(pageOf(managedUser))
    .query(async ({ ctx, input: { limit = MAX_PAGE, ...request } = {} }) => {
      const { users, ...next } = await ctx.accounts.administration.users.find({ limit, ...request });
      return { data: users.map(toFound), ...next };
    }),

  show: adminProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/{id}/details',
        summary: 'One user, with sessions, ways to log in and uploads (administrators)',
        description: `Includes unverified, blocked and deleted users. Sessions and identities: at most 100 each. Uploads: the newest ${UPLOADS_SHOWN}. For its activity see GET /api/users/{id}/activity.`,
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'NOT_FOUND'],
      },
    })
    .input(ofUser)
    .output(
      z.object({
        user: managedAccount,
        hasPassword: z.boolean(),
        hasSecondFactor: z.boolean().meta({ description: 'Whether a login requires a second factor' }),
        passkeys: z.int().meta({ description: 'Their number' }),
        identities: z.array(listedIdentity).meta({ description: 'Oldest first' }),
        sessions: z.array(listedSession.omit({ current: true })).meta({ description: 'Newest first' }),
        uploads: z.object({
          used: z.int().meta({ description: 'Bytes' }),
          quota: z.int().meta({ description: 'Bytes' }),
          files: z.int(),
          newest: z.array(listedUpload),
          quarantined: z
            .array(listedUpload)
            .optional()
            .meta({
              description: `The newest ${UPLOADS_SHOWN} files in quarantine. Only with a scanner`,
            }),
        }),
      }),
    )
    .query(async ({ ctx, input: { id } }) => {
      const shown = await ctx.accounts.administration.users.show(id);
      if (!shown) throw notFound();
      const { user, hasPassword, identities, totp, passkeys, sessions } = shown;
      const { used, quota, files } = await ctx.uploads.usage(id);
      const kept = await ctx.uploads.list(id, { limit: UPLOADS_SHOWN, after: undefined });
      const quarantined = await ctx.uploads.quarantined(id, UPLOADS_SHOWN);
      return {
        user: { ...ctx.accounts.users.views.toManagedUser(user), ...toManaged(user) },
        hasPassword,
        hasSecondFactor: totp.enabledAt !== undefined,
        passkeys: passkeys.length,
        identities: identities.map(toListedIdentity),
        sessions: sessions.map(toListedSession),
        uploads: {
          used,
          quota,
          files,
          newest: kept.uploads.map(toListedUpload),
          ...(quarantined && { quarantined: quarantined.map(toListedUpload) }),
        },
      };
    }),

  activity: adminProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/{id}/activity',
        summary: 'The activity of the account of a user, newest first (administrators)',
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'NOT_FOUND', 'VALIDATION_FAILED'],
      },
    })
    .input(ofUser.extend(uuidPage.shape))
    .output(eventPage)
    .query(async ({ ctx, input: { id, limit = MAX_PAGE, cursor } }) => {
      if (!(await ctx.accounts.users.exists(id))) throw notFound();
      return toEventPage(await ctx.accounts.listActivity(id, { limit, cursor }, 'administrator'));
    }),

  block: act('block', 'Block a user', {
    description:
      'Ends every session of the user; logins with a right credential are refused with ACCOUNT_BLOCKED. Mails the user. The last administrator cannot be blocked.',
    errors: ['LAST_ADMINISTRATOR'],
  })
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.administration.acts.blockUser(id, administratorOf(ctx));
      return answer('The user is blocked, and all sessions were ended.');
    }),

  unblock: act('unblock', 'Unblock a user', { description: 'Mails the user.' })
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.administration.acts.unblockUser(id, administratorOf(ctx));
      return answer('The user can log in again.');
    }),

  unlock: act('unlock', 'Reset the login limits of a user', {
    description:
      'Resets the counts of wrong passwords and codes for the account on all devices; with `address` also the login limits of that client address, for everyone who shares it.',
    errors: ['VALIDATION_FAILED'],
  })
    .input(
      ofUser.extend({
        address: z
          .union([z.ipv4(), z.ipv6()])
          .optional()
          .meta({ description: 'The IP address from which the user was refused', example: '203.0.113.7' }),
      }),
    )
    .output(done)
    .mutation(async ({ ctx, input: { id, address } }) => {
      await ctx.accounts.administration.acts.unlockUser(id, { address }, administratorOf(ctx));
      return answer("The user's login limits were reset.");
    }),

  setRole: act('role', 'Make a user an administrator, or an ordinary user', {
    description:
      'Mails the user. Ends every session of a new administrator. UNPROVEN_ACCOUNT for a user with an unverified email, or with a password or identity that another person may have added: a reset by mail removes it. The last administrator keeps the role.',
    errors: ['VALIDATION_FAILED', 'UNPROVEN_ACCOUNT', 'LAST_ADMINISTRATOR'],
  })
    .input(ofUser.extend({ role: z.enum(roles) }))
    .output(done)
    .mutation(async ({ ctx, input: { id, role } }) => {
      await ctx.accounts.administration.acts.setRole(id, role, administratorOf(ctx));
      return answer(role === 'admin' ? 'The user is an administrator.' : 'The user is not an administrator.');
    }),

  setFields: act('fields', 'Change fields of a user', {
    description:
      'Any fields of `PROFILE_FIELDS`; NOT_FOUND without configured ones. FIELD_TAKEN: another account has the value of a unique field.',
    errors: ['VALIDATION_FAILED', 'FIELD_TAKEN'],
  })
    .input(ofUser.extend({ fields: writtenFields('administrators').nonoptional() }))
    .output(z.object({ success: z.literal(true), fields: readFields('administrators') }))
    .mutation(async ({ ctx, input: { id, fields: sent } }) => {
      const change = fieldsIn(ctx, sent, { write: 'administrators' });
      if (!change) throw new ServiceError('NOT_FOUND');
      const user = await ctx.accounts.administration.acts.setFields(id, change, administratorOf(ctx));
      return { success: true as const, fields: ctx.accounts.users.views.toManagedUser(user).fields };
    }),

  sendReset: act('send-reset', 'Mail a user a password reset link', {
    description: 'Like POST /auth/forgot-password, with the same limits on mails to an address.',
  })
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.administration.acts.sendReset(id, administratorOf(ctx));
      return answer('A link to set a new password is on its way to the user.');
    }),

  endSessions: act('end-sessions', 'End every session of a user')
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.administration.acts.endSessionsOfUser(id, administratorOf(ctx));
      return answer('All sessions of the user were ended.');
    }),

  removeSecondFactors: act(
    'remove-second-factors',
    'Remove the authenticator app and the recovery codes of a user who has lost them',
    { description: 'Mails the user. Has no effect for a user without an app.' },
  )
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.administration.acts.removeSecondFactors(id, administratorOf(ctx));
      return answer('The user can log in without a second factor.');
    }),

  impersonate: act('impersonate', 'Act for a user', {
    description:
      'Opens a session of the user for 30 minutes in place of the administrator’s own, and sets it as session cookie; POST /auth/logout ends it. Each event in it names the administrator. It is refused whatever needs a recent credential, and ends with all sessions of the user or of the administrator. Mails the user, unless `IMPERSONATION` is `quiet`. FORBIDDEN for another administrator, and without a second factor or passkey in the administrator’s session (rules `is_administrator`, `second_factor`). NOT_FOUND unless `IMPERSONATION` is on.',
    errors: ['ACCOUNT_BLOCKED', 'ACCOUNT_DELETED', 'EMAIL_NOT_VERIFIED'],
  })
    .input(ofUser)
    .output(loggedIn)
    .mutation(async ({ ctx, input: { id } }) => {
      const caller = administratorOf(ctx);
      const { session, token } = ownSession(ctx);
      const { user, ...opened } = await ctx.accounts.administration.acts.impersonate(id, { ...session, token }, caller);
      await ctx.accounts.sessions.retire(token);
      ctx.cookies.setSession(opened);
      const { email, name, provider } = user;
      return { ...answer('You act for the user.'), user: { id, email, name, provider } };
    }),

  delete: recentAdminProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/users/{id}',
        summary: 'Delete the account of a user (administrators)',
        description:
          'Like the user’s own DELETE /api/account: until `removedAfter` the user can restore the account by a login, unless it is blocked; then all data stored about the user is removed, including uploads. Mails the user. The last administrator cannot be deleted. Requires a session with a credential given in the last ten minutes.',
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'LAST_ADMINISTRATOR', 'RATE_LIMITED'],
      },
    })
    .input(ofUser)
    .output(done.extend({ deletedAt: unixSeconds, removedAfter: unixSeconds }))
    .mutation(async ({ ctx, input: { id } }) => {
      const { deletedAt, removedAfter } = await ctx.accounts.administration.acts.deleteAccountOf(
        id,
        administratorOf(ctx),
      );
      return {
        ...answer('The account was deleted. It can be restored for a while.'),
        deletedAt: toUnixSeconds(deletedAt),
        removedAfter: toUnixSeconds(removedAfter),
      };
    }),
});
