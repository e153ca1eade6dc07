import { z } from 'zod';
import type { ListedConsent } from '../../server/accounts/users/index.ts';
import { answer, done } from '../schemas/done.ts';
import { termsVersion as version } from '../schemas/fields.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { router, sessionProcedure, userProcedure } from '../trpc.ts';

const toListed = ({ version, createdAt }: ListedConsent) => ({ version, acceptedAt: toUnixSeconds(createdAt) });

export const consents = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/consents',
        summary: 'The versions of the terms that the logged-in user has accepted, newest first',
        description: 'If no version equals `current`, the user has yet to accept the current terms.',
        tags: ['Account'],
        protect: true,
        errors: [],
      },
    })
    .output(
      z.object({
        data: z.array(z.object({ version, acceptedAt: unixSeconds })),
        current: version.optional().meta({ description: 'The current version; absent without terms' }),
      }),
    )
    .query(async ({ ctx }) => {
      const { current, consents } = await ctx.accounts.users.consents.list(ctx.session.user.id);
      return { data: consents.map(toListed), ...(current !== undefined && { current }) };
    }),

  accept: userProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/consents',
        summary: 'Accept the current terms',
        description: 'Takes the version that the user was shown; it is refused if it is no longer the current one.',
        tags: ['Account'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN'],
      },
    })
    .input(z.object({ version }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.lifecycle.terms.accept(ctx.session, input.version);
      return answer('Your consent was saved.');
    }),
});
