import { z } from 'zod';
import * as fields from './fields.ts';
import { publicProcedure, router } from './trpc.ts';
import { done } from './users.ts';

const messages = {
  deleted: 'The account is deleted.',
  secured: 'What you did not add is removed from the account, and every device is logged out.',
};

export const account = router({
  notMe: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/auth/not-me',
        summary: 'Disown the account of a mailed token',
        description:
          'For the owner of an address, who did not ask for the account. Takes the token of the verification mail, used or not. Removes the login methods that are not proven and ends all sessions; an account without a proven login method is deleted.',
        tags: ['Authentication'],
        protect: false,
        errors: ['INVALID_TOKEN', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ token: fields.mailedToken }))
    .output(done)
    .mutation(async ({ ctx, input }) => {
      const outcome = await ctx.accounts.disown(input.token, ctx.clientAddress());
      return { success: true as const, message: messages[outcome] };
    }),
});
