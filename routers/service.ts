import { z } from 'zod';
import { isSessionToken } from '../server/accounts/sessions.ts';
import { ServiceError } from '../server/errors.ts';
import { answer, done } from './done.ts';
import { profileOutput, toProfile } from './profile.ts';
import { callerOf, router, serviceProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';
import { isUserId, userId } from './users.ts';

const MOST_USERS = 100;

/** For other services, over /trpc only, by a service token. No limits apply. */
export const service = router({
  // A mutation, because it may prolong the session, and because a query would put the token of the session into the
  // URL, which logs and proxies record.
  session: serviceProcedure
    .meta({
      summary:
        'The user and session of a cookie `auth_session` that another service received, or null. Counts as a use: it may prolong the session.',
    })
    .input(z.object({ token: z.string().meta({ description: 'The value of the cookie `auth_session`' }) }))
    .output(
      z
        .object({
          user: profileOutput,
          session: z.object({ createdAt: unixSeconds, expiresAt: unixSeconds }),
          fresh: z.boolean().meta({
            description: 'The session was prolonged by this use: set the cookie again, until session.expiresAt',
          }),
        })
        .nullable(),
    )
    .mutation(async ({ ctx, input: { token } }) => {
      const session = isSessionToken(token) ? await ctx.accounts.sessions.validate(token) : null;
      if (!session) return null;
      const { user, createdAt, expiresAt, fresh } = session;
      return {
        user: toProfile(user),
        session: { createdAt: toUnixSeconds(createdAt), expiresAt: toUnixSeconds(expiresAt) },
        fresh,
      };
    }),

  users: serviceProcedure
    .meta({ summary: `At most ${MOST_USERS} users at once, in the order of the ids; unknown ones are left out` })
    .input(z.object({ ids: z.array(userId).max(MOST_USERS) }))
    .output(z.object({ users: z.array(profileOutput) }))
    .query(async ({ ctx, input }) => {
      const ids = [...new Set(input.ids)].filter(isUserId);
      const found = await ctx.accounts.users.findAll(ids);
      return { users: found.map(toProfile) };
    }),

  endSessions: serviceProcedure
    .meta({ summary: 'End every session of a user, on all devices' })
    .input(z.object({ userId }))
    .output(done)
    .mutation(async ({ ctx, input: { userId: id } }) => {
      if (
        !isUserId(id) ||
        !(await ctx.accounts.sessions.endAll(id, callerOf(ctx, { actor: `service:${ctx.service}` })))
      ) {
        throw new ServiceError('NOT_FOUND', { message: 'User not found' });
      }
      return answer('Every session of the user has ended.');
    }),
});
