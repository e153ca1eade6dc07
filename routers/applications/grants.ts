import { z } from 'zod';
import { answer, done } from '../schemas/done.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { callerOf, router, sessionProcedure, userProcedure } from '../trpc.ts';

const grant = z
  .object({
    id: z.string().meta({ description: 'Of the application' }),
    name: z.string(),
    logoUrl: z.string().nullable(),
    scopes: z.array(z.string()).meta({ description: 'What it may' }),
    createdAt: unixSeconds,
    lastUsedAt: unixSeconds,
  })
  .meta({ id: 'Grant' });

/** The access that users gave to applications. */
export const grants = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/grants',
        summary: 'The applications with access to the account',
        tags: ['Applications'],
        protect: true,
        errors: [],
      },
    })
    .output(z.object({ data: z.array(grant) }))
    .query(async ({ ctx }) => {
      const listed = await ctx.oauth.access.list(ctx.session.user);
      const data = listed.map(({ createdAt, lastUsedAt, ...row }) => ({
        ...row,
        createdAt: toUnixSeconds(createdAt),
        lastUsedAt: toUnixSeconds(lastUsedAt),
      }));
      return { data };
    }),

  revoke: userProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/grants/{id}',
        summary: 'End the access of an application',
        description:
          'Its refresh tokens and opaque access tokens are void at once, JWT access tokens within five minutes.',
        tags: ['Applications'],
        protect: true,
        errors: ['FORBIDDEN', 'NOT_FOUND'],
      },
    })
    .input(z.object({ id: z.string().max(64) }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.oauth.access.revoke(ctx.session.user, id, callerOf(ctx));
      return answer('The application no longer has access.');
    }),
});
