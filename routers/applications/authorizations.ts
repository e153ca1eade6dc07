import { z } from 'zod';
import { endSession } from '../auth/end-session.ts';
import { callerOf, currentSession, publicProcedure, router, userProcedure } from '../trpc.ts';

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

const parameter = z.string().max(8192).optional();

/** Requests of applications that the browser brings, for the account pages. */
export const authorizations = router({
  proceed: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/authorizations/{id}',
        summary: 'What an authorization request of an application needs next',
        description:
          'For the page `/authorize`, in the browser that began the request. `allow` and `userId` answer the step `consent`, after it was returned; `second-factor` asks the user to add one, or to log in with a passkey; `continue` names the address that ends the request. It takes no access key or token.',
        tags: ['Applications'],
        protect: false,
        setsCookie: true,
        errors: [
          'VALIDATION_FAILED',
          'UNAUTHENTICATED',
          'INSUFFICIENT_SCOPE',
          'OTHER_USER',
          'NOT_FOUND',
          'RATE_LIMITED',
        ],
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
        step: z.enum(['continue', 'login', 'second-factor', 'consent']),
        location: z.string().optional().meta({ description: 'Of `continue`' }),
        loginHint: z.string().optional().meta({ description: 'Of `login`: an address to fill in, not checked' }),
        ...consent,
      }),
    )
    .mutation(async ({ ctx, input: { id, allow, userId } }) => {
      const session = await currentSession(ctx);
      // An application gets no access from an administrator who acts for the user.
      const request = { browser: ctx.browser(), session: session?.actor ? null : session };
      return ctx.oauth.proceed(id, request, { isAllowed: allow, userId }, callerOf(ctx));
    }),

  logOut: publicProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/authorizations/logout',
        summary: 'End the current session because an application asks for it',
        description:
          'For the page `/logout`, with the parameters of `/oauth/logout`. The session ends if the ID token is that of its user, or if `userId` answers the step `confirm`. A request that does not fit its application leads nowhere. It takes no access key or token.',
        tags: ['Applications'],
        protect: false,
        setsCookie: true,
        errors: ['VALIDATION_FAILED', 'UNAUTHENTICATED', 'INSUFFICIENT_SCOPE', 'OTHER_USER'],
      },
    })
    .input(
      z.object({
        idTokenHint: parameter.meta({ description: 'An ID token of the application; an expired one too' }),
        clientId: parameter,
        postLogoutRedirectUri: parameter.meta({ description: 'Registered for the application' }),
        state: parameter,
        userId: z.string().optional().meta({ description: 'The user who was asked' }),
      }),
    )
    .output(
      z.object({
        step: z.enum(['continue', 'confirm', 'done']),
        location: z.string().optional().meta({ description: 'Of `continue`' }),
        userId: z.string().optional().meta({ description: 'The user who is asked' }),
        email: z.string().optional(),
      }),
    )
    .mutation(async ({ ctx, input: { userId, ...request } }) => {
      const session = await currentSession(ctx);
      const asked = await ctx.oauth.checkLogout(request);
      // A link of another person must not end the session.
      if (session && ![asked.userId, userId].includes(session.user.id))
        return { step: 'confirm' as const, userId: session.user.id, email: session.user.email };
      await endSession(ctx, session);
      const { location } = asked;
      return location === undefined ? { step: 'done' as const } : { step: 'continue' as const, location };
    }),

  device: userProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/device',
        summary: 'What a device asks for, and the answer of the user',
        description:
          'For the page `/device`. `allow` and `userId` answer the step `consent`, after it was returned; `login`: the device wants a new login first. RATE_LIMITED: too many wrong codes.',
        tags: ['Applications'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'NOT_FOUND', 'RATE_LIMITED'],
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
        step: z.enum(['done', 'login', 'second-factor', 'consent']),
        ...consent,
        userCode: z.string().optional().meta({ description: 'As the device shows it' }),
      }),
    )
    .mutation(({ ctx, input: { userCode, allow, userId } }) =>
      ctx.oauth.answerDevice(userCode, ctx.session, { isAllowed: allow, userId }, callerOf(ctx)),
    ),
});
