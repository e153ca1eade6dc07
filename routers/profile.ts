import { z } from 'zod';
import type { Account } from '../server/accounts/users.ts';
import * as fields from './fields.ts';
import { callerOf, router, sessionProcedure } from './trpc.ts';
import { publicUser, toPublicUser } from './users.ts';

export const profileOutput = publicUser.extend({ emailVerified: z.boolean() }).meta({ id: 'Profile' });

export const toProfile = (account: Account) => ({ ...toPublicUser(account), emailVerified: account.emailVerified });

/** Every field optional: only what is sent changes. */
const change = z.object(fields.profile).partial();

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

  update: sessionProcedure
    .meta({
      openapi: {
        method: 'PUT',
        path: '/api/profile',
        summary: 'Change the profile of the logged-in user',
        description: 'Only what is sent changes. An empty string or null clears a field, name excepted.',
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
