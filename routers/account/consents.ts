import { z } from 'zod';
import type { ListedConsent } from '../server/accounts/consents.ts';
import { answer, done } from './done.ts';
import { termsVersion as version } from './fields.ts';
import { router, sessionProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

const toListed = ({ version, createdAt }: ListedConsent) => ({ version, acceptedAt: toUnixSeconds(createdAt) });

export const consents = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/consents',
        summary: 'The versions of the terms that the logged-in user has accepted, newest first',
        description: 'The user has yet to accept the current terms where no version is the `current` one.',
        tags: ['Account'],
        protect: true,
        errors: [],
      },
    })
    .output(
      z.object({
        data: z.array(z.object({ version, acceptedAt: unixSeconds })),
        current: version.optional().meta({ description: 'The current version; absent where there are no terms' }),
      }),
    )
    .query(async ({ ctx }) => {
      const { current, consents } = await ctx.accounts.listConsents(ctx.session.user.id);
      return { data: consents.map(toListed), ...(current !== undefined && { current }) };
    }),

  accept: sessionProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/consents',
        summary: 'Accept the current terms',
        description: 'By the version that the user was shown; it is refused where it is not the current one any more.',
        tags: ['Account'],
        protect: true,
        errors: ['VALIDATION_FAILED'],
      },
    })
    .input(z.object({ version }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      await ctx.accounts.acceptTerms(ctx.session, input.version);
      return answer('Your consent is stored.');
    }),
});
