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
        summary: 'Say that one did not ask for the account that the mailed token is for',
        description:
          'Takes the token of the verification mail, used or not. Removes what the owner of the address did not add, sessions included; an account of which nothing is left is deleted.',
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
