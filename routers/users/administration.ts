import { z } from 'zod';
import { roles } from '../entities/index.ts';
import type { ManagedUser } from '../server/accounts/managed-users.ts';
import { ServiceError } from '../server/errors.ts';
import { eventPage, toEventPage } from './activity.ts';
import { answer, done } from './done.ts';
import * as fields from './fields.ts';
import { listed as listedIdentity, toListed as toListedIdentity } from './identities.ts';
import { listed as listedUpload, toListed as toListedUpload } from './kept-uploads.ts';
import { listed as listedSession, toListed as toListedSession } from './sessions.ts';
import { administratorOf, adminProcedure, type Meta, recentAdminProcedure, router } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';
import { isUserId, listed, listInput, publicUser, toListed, toPublicUser, userId } from './users.ts';

const UPLOADS_SHOWN = 20;

const notFound = () => new ServiceError('NOT_FOUND', { message: 'User not found' });

/** Of an act on a user: text that is no id is that of no user. */
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
const managedUser = listed.extend(managed).meta({ id: 'ManagedUser' });
const managedAccount = publicUser.extend(managed).meta({ id: 'ManagedAccount' });

const toManaged = ({ role, emailVerified, blockedAt, deletedAt }: ManagedUser) => ({
  role,
  emailVerified,
  blockedAt: blockedAt === null ? null : toUnixSeconds(blockedAt),
  deletedAt: deletedAt === null ? null : toUnixSeconds(deletedAt),
});

/** An act on the user of a path. */
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
      description: `${description}${description && ' '}Needs a session in which a credential was given in the last ten minutes.`,
      tags: ['Users'],
      protect: true,
      errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'NOT_FOUND', ...errors],
    },
  });

/** How administrators look after users. Part of `users`. */
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
    .input(listInput)
    .output(
      z.object({
        data: z.array(managedUser),
        nextCursor: z.string().optional().meta({ description: 'Only where more follow' }),
      }),
    )
    .query(async ({ ctx, input: { limit = fields.LARGEST_PAGE, cursor, q } = {} }) => {
      const { users, ...next } = await ctx.accounts.managedUsers.find({ q, cursor, limit });
      return { data: users.map((user) => ({ ...toListed(user), ...toManaged(user) })), ...next };
    }),

  show: adminProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/{id}/details',
        summary: 'One user, with sessions, ways to log in and uploads (administrators)',
        description: `Also a user who is unverified, blocked or being deleted. Sessions and identities: at most 100 each. Uploads: the newest ${UPLOADS_SHOWN}. What happened to the account is at GET /api/users/{id}/activity.`,
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
        hasSecondFactor: z.boolean().meta({ description: 'Whether a login asks for a second factor' }),
        passkeys: z.int().meta({ description: 'How many there are' }),
        identities: z.array(listedIdentity).meta({ description: 'At providers, the oldest first' }),
        sessions: z.array(listedSession.omit({ current: true })).meta({ description: 'The newest first' }),
        uploads: z.object({
          used: z.int().meta({ description: 'Bytes' }),
          quota: z.int().meta({ description: 'Bytes' }),
          files: z.int(),
          newest: z.array(listedUpload),
        }),
      }),
    )
    .query(async ({ ctx, input: { id } }) => {
      const shown = await ctx.accounts.managedUsers.show(id);
      if (!shown) throw notFound();
      const { user, hasPassword, identities, totp, passkeys, sessions } = shown;
      const { used, quota, files } = await ctx.uploads.usage(id);
      const kept = await ctx.uploads.list(id, { limit: UPLOADS_SHOWN, after: undefined });
      return {
        user: { ...toPublicUser(user), ...toManaged(user) },
        hasPassword,
        hasSecondFactor: totp.enabledAt !== undefined,
        passkeys: passkeys.length,
        identities: identities.map(toListedIdentity),
        sessions: sessions.map(toListedSession),
        uploads: { used, quota, files, newest: kept.uploads.map(toListedUpload) },
      };
    }),

  activity: adminProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/users/{id}/activity',
        summary: 'What happened to the account of a user, newest first (administrators)',
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'NOT_FOUND', 'VALIDATION_FAILED'],
      },
    })
    .input(ofUser.extend({ limit: fields.pageLimit, cursor: fields.uuidCursor }))
    .output(eventPage)
    .query(async ({ ctx, input: { id, limit = fields.LARGEST_PAGE, cursor } }) => {
      if (!(await ctx.accounts.users.exists(id))) throw notFound();
      return toEventPage(await ctx.accounts.activity(id, { limit, cursor }));
    }),

  block: act('block', 'Block a user', {
    description:
      'Every session of the user ends, and every login with a right credential is answered with ACCOUNT_BLOCKED. The user is told by mail. The last administrator is not blocked.',
    errors: ['LAST_ADMINISTRATOR'],
  })
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.blockUser(id, administratorOf(ctx));
      return answer('The user is blocked, and every session has ended.');
    }),

  unblock: act('unblock', 'Unblock a user', { description: 'The user is told by mail.' })
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.unblockUser(id, administratorOf(ctx));
      return answer('The user can log in again.');
    }),

  unlock: act('unlock', 'Lift the limits on logins of a user', {
    description:
      'Wrong passwords and codes for the account count anew, from whichever device. With `address` the logins from that client address count anew too, for everyone who shares it.',
    errors: ['VALIDATION_FAILED'],
  })
    .input(
      ofUser.extend({
        address: z
          .union([z.ipv4(), z.ipv6()])
          .optional()
          .meta({ description: 'An IP address, from which the user was refused', example: '203.0.113.7' }),
      }),
    )
    .output(done)
    .mutation(async ({ ctx, input: { id, address } }) => {
      await ctx.accounts.unlockUser(id, { address }, administratorOf(ctx));
      return answer('Failed logins of the user count anew.');
    }),

  setRole: act('role', 'Make a user an administrator, or an ordinary user', {
    description:
      'The user is told by mail. Every session of a new administrator ends. UNPROVEN_ACCOUNT for a user who has not verified the email, or who has a password or identity that another person may have added: a reset by mail removes that. The last administrator keeps the role.',
    errors: ['VALIDATION_FAILED', 'UNPROVEN_ACCOUNT', 'LAST_ADMINISTRATOR'],
  })
    .input(ofUser.extend({ role: z.enum(roles) }))
    .output(done)
    .mutation(async ({ ctx, input: { id, role } }) => {
      await ctx.accounts.setRole(id, role, administratorOf(ctx));
      return answer(role === 'admin' ? 'The user is an administrator.' : 'The user is no administrator.');
    }),

  sendReset: act('send-reset', 'Mail a user the link that sets a new password', {
    description: 'As POST /auth/forgot-password does, within the same limits on mails to an address.',
  })
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.sendReset(id, administratorOf(ctx));
      return answer('A link to set a new password is on its way to the user.');
    }),

  endSessions: act('end-sessions', 'End every session of a user')
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.endSessionsOfUser(id, administratorOf(ctx));
      return answer('Every session of the user has ended.');
    }),

  removeSecondFactors: act(
    'remove-second-factors',
    'Remove the authenticator app and the recovery codes of a user who has lost them',
    { description: 'The user is told by mail. Nothing happens to a user without an app.' },
  )
    .input(ofUser)
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.removeSecondFactors(id, administratorOf(ctx));
      return answer('The user can log in without a second factor.');
    }),

  delete: recentAdminProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/users/{id}',
        summary: 'Delete the account of a user (administrators)',
        description:
          'As the user’s own DELETE /api/account does: until `removedAfter` the user can restore the account by a login, unless it is blocked; then everything that is stored about the user is removed, uploads included. The user is told by mail. The last administrator is not deleted. Needs a session in which a credential was given in the last ten minutes.',
        tags: ['Users'],
        protect: true,
        errors: ['FORBIDDEN', 'REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'LAST_ADMINISTRATOR'],
      },
    })
    .input(ofUser)
    .output(done.extend({ deletedAt: unixSeconds, removedAfter: unixSeconds }))
    .mutation(async ({ ctx, input: { id } }) => {
      const { deletedAt, removedAfter } = await ctx.accounts.deleteAccountOf(id, administratorOf(ctx));
      return {
        ...answer('The account is deleted. It can be restored for a while.'),
        deletedAt: toUnixSeconds(deletedAt),
        removedAfter: toUnixSeconds(removedAfter),
      };
    }),
});
