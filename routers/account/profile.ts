import { z } from 'zod';
import type { Session } from '../../server/accounts/sessions/index.ts';
import * as fields from '../schemas/fields.ts';
import { fieldsIn, readFields, writtenFields } from '../schemas/profile-fields.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { variant } from '../schemas/variant.ts';
import { callerOf, router, sessionProcedure } from '../trpc.ts';
import { withoutEmail } from '../users/public-read.ts';
import { publicUser } from '../users/users.ts';

const profileOutput = publicUser.extend({ emailVerified: z.boolean() });

/** For other services. */
export const serviceProfile = profileOutput.extend({ fields: readFields('services') });

const ownProfile = profileOutput
  .extend({
    fields: readFields('owner'),
    avatarVariants: z
      .array(variant)
      .optional()
      .meta({ description: 'Smaller pictures of the avatar; absent unless it is an image that was uploaded here' }),
  })
  .meta({ id: 'Profile' });

const impersonation = z
  .object({
    by: z.string().meta({ description: 'The id of the administrator' }),
    expiresAt: unixSeconds.meta({ description: 'When the session ends, in Unix seconds' }),
  })
  .optional()
  .meta({ description: 'Only while an administrator acts for the user (`users.impersonate`)' });

const impersonationIn = ({ actor, expiresAt }: Session) =>
  actor && { impersonation: { by: actor.id, expiresAt: toUnixSeconds(expiresAt) } };

/** Omits `email` for a key or token without its scope. Typed front ends, which have sessions, need no change. */
const profileProcedure = sessionProcedure.use(async ({ ctx, next }) => {
  const answered = await next();
  if (!answered.ok || ctx.scopes === undefined || ctx.scopes.includes('email')) return answered;
  const { user, ...others } = answered.data as { user: object };
  return { ...answered, data: { ...others, user: withoutEmail(user) } };
});

/** Every field is optional: only fields that are sent change. */
const change = z
  .object({ ...fields.profile, language: fields.language.nullable(), fields: writtenFields('owner') })
  .partial();

export const profile = router({
  get: profileProcedure
    .meta({
      scope: 'profile:read',
      openapi: {
        method: 'GET',
        path: '/api/profile',
        summary: 'The profile of the logged-in user',
        description: 'An access key or token without the scope `email` gets no `email`.',
        tags: ['Profile'],
        protect: true,
        namesUser: true,
        errors: [],
      },
    })
    .output(
      z.object({
        user: ownProfile,
        impersonation,
        role: z
          .literal('admin')
          .optional()
          .meta({ description: 'Only in the answer to an administrator with a session' }),
        hasBreachedPassword: z.literal(true).optional().meta({
          description: 'The login of this session was by a password in `BREACHED_PASSWORDS_FILE`: ask for another one',
        }),
      }),
    )
    .query(({ ctx: { session, scopes, accounts } }) => ({
      user: accounts.users.views.toOwnProfile(session.user),
      ...impersonationIn(session),
      ...(scopes === undefined && session.user.role === 'admin' && { role: 'admin' as const }),
      ...(session.hasBreachedPassword && { hasBreachedPassword: true as const }),
    })),

  language: sessionProcedure
    .meta({
      scope: 'profile:read',
      openapi: {
        method: 'GET',
        path: '/api/profile/language',
        summary: 'The language that the logged-in user has chosen',
        description: 'null without a choice: pages and mails are then in the language of the browser.',
        tags: ['Profile'],
        protect: true,
        errors: [],
      },
    })
    .output(z.object({ language: z.string().nullable() }))
    .query(async ({ ctx }) => {
      const { id } = ctx.session.user;
      return { language: (await ctx.accounts.users.languagesOf({ id }))?.language ?? null };
    }),

  update: profileProcedure
    .meta({
      scope: 'profile:write',
      openapi: {
        method: 'PUT',
        path: '/api/profile',
        summary: 'Change the profile of the logged-in user',
        description:
          'Only sent fields change. An empty string or null clears a field, except `name`. `language` applies to pages and mails, null selects that of the browser; GET /api/profile/language returns it. FIELD_TAKEN: another account has the value of a unique field of `fields`.',
        tags: ['Profile'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FIELD_TAKEN', 'RATE_LIMITED'],
      },
    })
    .input(change)
    .output(z.object({ success: z.literal(true), user: ownProfile }))
    .mutation(async ({ ctx, input }) => {
      const { customFields, update, views } = ctx.accounts.users;
      const own = fieldsIn(ctx, input.fields, { write: 'owner' });
      const owner = ctx.session.user;
      if (own && customFields.asksForOthers(owner, own)) await ctx.limits.enforce('uniqueField', owner.id);
      const user = await update(owner, { ...input, fields: own }, callerOf(ctx));
      return { success: true as const, user: views.toOwnProfile(user) };
    }),
});
