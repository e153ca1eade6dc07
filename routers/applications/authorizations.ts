import { z } from 'zod';
import { callerOf, currentSession, publicProcedure, router, sessionProcedure } from '../trpc.ts';

const consent = {
  application: z.object({ name: z.string(), logoUrl: z.string().nullable() }).optional(),
  scopes: z.array(z.string()).optional().meta({ description: 'What the application asks for' }),
  userId: z.string().optional().meta({ description: 'The user who is asked' }),
  email: z.string().optional(),
};

const answer = {
  allow: z.boolean().optional(),
  userId: z.string().optional().meta({ description: 'The user who was asked' }),
};

/** Authorization requests of applications, for the account page. */
export const authorizations = router({
  proceed: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/authorizations/{id}',
        summary: 'What an authorization request of an application needs next',
        description:
          'For the page `/authorize`, in the browser that began the request. `allow` and `userId` answer the step `consent`; `continue` names the address that ends the request. It takes no access key or token.',
        tags: ['Applications'],
        protect: false,
        errors: ['VALIDATION_FAILED', 'UNAUTHENTICATED', 'INSUFFICIENT_SCOPE', 'NOT_FOUND'],
      },
    })
    .input(
      z.object({
        id: z.string().max(64).meta({ description: 'Of the request, from the address of the page' }),
        ...answer,
      }),
    )
    .output(
      z.object({
        step: z.enum(['continue', 'login', 'consent']),
        location: z.string().optional().meta({ description: 'Of `continue`' }),
        loginHint: z.string().optional().meta({ description: 'Of `login`: an address to fill in, not checked' }),
        ...consent,
      }),
    )
    .mutation(async ({ ctx, input: { id, allow, userId } }) => {
      const session = await currentSession(ctx);
      const request = { browser: ctx.browser(), session };
      return ctx.oauth.proceed(id, request, { isAllowed: allow, userId }, callerOf(ctx));
    }),

  device: sessionProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/device',
        summary: 'What a device asks for, and the answer of the user',
        description:
          'For the page `/device`. `allow` and `userId` answer the step `consent`; `login`: the device wants a new login first. RATE_LIMITED: too many wrong codes.',
        tags: ['Applications'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .input(
      z.object({
        userCode: z
          .string()
          .max(64)
          .meta({ description: 'In any case, with or without the dash', example: 'WDJB-MJHT' }),
        ...answer,
      }),
    )
    .output(
      z.object({
        step: z.enum(['done', 'login', 'consent']),
        ...consent,
        userCode: z.string().optional().meta({ description: 'As the device shows it' }),
      }),
    )
    .mutation(({ ctx, input: { userCode, allow, userId } }) =>
      ctx.oauth.answerDevice(userCode, ctx.session, { isAllowed: allow, userId }, callerOf(ctx)),
    ),
});
