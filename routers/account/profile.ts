import { z } from 'zod';
import type { Account } from '../server/accounts/users.ts';
import * as fields from './fields.ts';
import { callerOf, router, sessionProcedure } from './trpc.ts';
import { publicUser, toPublicUser } from './users.ts';

export const profileOutput = publicUser.extend({ emailVerified: z.boolean() }).meta({ id: 'Profile' });

export const toProfile = (account: Account) => ({ ...toPublicUser(account), emailVerified: account.emailVerified });

/** Every field optional: only what is sent changes. */
const change = z.object({ ...fields.profile, language: fields.language.nullable() }).partial();

export const profile = router({
  get: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/profile',
        summary: 'The profile of the logged-in user',
        tags: ['Profile'],
        protect: true,
        errors: [],
      },
    })
    .output(z.object({ user: profileOutput }))
    .query(({ ctx }) => ({ user: toProfile(ctx.session.user) })),

  language: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/profile/language',
        summary: 'The language that the logged-in user has chosen',
        description: 'null where the user has chosen none: then pages and mails are in the language of the browser.',
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

  update: sessionProcedure
    .meta({
      openapi: {
        method: 'PUT',
        path: '/api/profile',
        summary: 'Change the profile of the logged-in user',
        description:
          'Only what is sent changes. An empty string or null clears a field, name excepted. `language` is that of the pages and of mails to the user, null that of the browser; GET /api/profile/language answers it.',
        tags: ['Profile'],
        protect: true,
        errors: ['VALIDATION_FAILED'],
      },
    })
    .input(change)
    .output(z.object({ success: z.literal(true), user: profileOutput }))
    .mutation(async ({ ctx, input }) => ({
      success: true as const,
      user: toProfile(await ctx.accounts.users.update(ctx.session.user, input, callerOf(ctx))),
    })),
});
