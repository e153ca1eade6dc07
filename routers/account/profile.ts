import { z } from 'zod';
import { toOwnProfile } from '../../server/accounts/users/index.ts';
import * as fields from '../schemas/fields.ts';
import { variant } from '../schemas/variant.ts';
import { callerOf, router, sessionProcedure } from '../trpc.ts';
import { withoutEmail } from '../users/public-read.ts';
import { publicUser } from '../users/users.ts';

export const profileOutput = publicUser.extend({ emailVerified: z.boolean() });

const ownProfile = profileOutput
  .extend({
    avatarVariants: z
      .array(variant)
      .optional()
      .meta({ description: 'Smaller pictures of the avatar; absent unless it is an image that was uploaded here' }),
  })
  .meta({ id: 'Profile' });

/** Omits `email` for a key or token without its scope. Typed front ends, which have sessions, need no change. */
const profileProcedure = sessionProcedure.use(async ({ ctx, next }) => {
  const answered = await next();
  if (!answered.ok || ctx.scopes === undefined || ctx.scopes.includes('email')) return answered;
  const { user, ...others } = answered.data as { user: object };
  return { ...answered, data: { ...others, user: withoutEmail(user) } };
});

/** Every field is optional: only fields that are sent change. */
const change = z.object({ ...fields.profile, language: fields.language.nullable() }).partial();

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
        errors: [],
      },
    })
    .output(z.object({ user: ownProfile }))
    .query(({ ctx }) => ({ user: toOwnProfile(ctx.session.user) })),

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
          'Only sent fields change. An empty string or null clears a field, except `name`. `language` applies to pages and mails, null selects that of the browser; GET /api/profile/language returns it.',
        tags: ['Profile'],
        protect: true,
        errors: ['VALIDATION_FAILED'],
      },
    })
    .input(change)
    .output(z.object({ success: z.literal(true), user: ownProfile }))
    .mutation(async ({ ctx, input }) => ({
      success: true as const,
      user: toOwnProfile(await ctx.accounts.users.update(ctx.session.user, input, callerOf(ctx))),
    })),
});
