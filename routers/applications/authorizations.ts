import { z } from 'zod';
import { callerOf, currentSession, publicProcedure, router } from '../trpc.ts';

/** Authorization requests of applications, for the account page. */
export const authorizations = router({
  proceed: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/authorizations/{id}',
        summary: 'What an authorization request of an application needs next',
        description:
          'For the page `/authorize`, in the browser that began the request. `allow` and `userId` answer the step `consent`; `second-factor` asks the user to add one, or to log in with a passkey; `continue` names the address that ends the request. It takes no access key or token.',
        tags: ['Applications'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'UNAUTHENTICATED', 'INSUFFICIENT_SCOPE', 'NOT_FOUND'],
      },
    })
    .input(
      z.object({
        id: z.string().max(64).meta({ description: 'Of the request, from the address of the page' }),
        allow: z.boolean().optional(),
        userId: z.string().optional().meta({ description: 'The user who was asked' }),
      }),
    )
    .output(
      z.object({
        step: z.enum(['continue', 'login', 'second-factor', 'consent']),
        location: z.string().optional().meta({ description: 'Of `continue`' }),
        application: z.object({ name: z.string(), logoUrl: z.string().nullable() }).optional(),
        scopes: z.array(z.string()).optional().meta({ description: 'What the application asks for' }),
        userId: z.string().optional().meta({ description: 'The user who is asked' }),
        email: z.string().optional(),
      }),
    )
    .mutation(async ({ ctx, input: { id, allow, userId } }) => {
      const session = await currentSession(ctx);
      const request = { browser: ctx.browser(), session };
      return ctx.oauth.proceed(id, request, { isAllowed: allow, userId }, callerOf(ctx));
    }),
});
