import { validate as isUuid } from 'uuid';
import { z } from 'zod';
import type { ListedSession } from '../../server/accounts/sessions/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { answer, done } from '../schemas/done.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { callerOf, requireUser, router, sessionProcedure } from '../trpc.ts';

const sessionId = z.string().meta({ example: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' });

export const listed = z.object({
  id: sessionId,
  createdAt: unixSeconds,
  lastUsedAt: unixSeconds.meta({ description: 'Unix seconds, of the hour of the last use' }),
  address: z.string().meta({ description: 'The IP address of the login', example: '203.0.113.7' }),
  device: z.string().meta({ description: 'As the User-Agent describes it', example: 'Firefox on Linux' }),
  method: z.string().meta({ description: '`password`, or the name of an identity provider', example: 'password' }),
  current: z.boolean().meta({ description: 'Whether it is the session of this call' }),
});

export const toListed = ({ id, createdAt, lastUsedAt, address, device, method }: ListedSession) => ({
  id,
  createdAt: toUnixSeconds(createdAt),
  lastUsedAt: toUnixSeconds(lastUsedAt),
  address,
  device,
  method,
});

export const sessions = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/sessions',
        summary: 'Where the user is logged in, newest first',
        description: 'At most 100, the newest.',
        tags: ['Sessions'],
        protect: true,
        errors: [],
      },
    })
    .output(z.object({ data: z.array(listed) }))
    .query(async ({ ctx }) => {
      const found = await ctx.accounts.sessions.list(ctx.session.user);
      return { data: found.map((session) => ({ ...toListed(session), current: session.id === ctx.session.id })) };
    }),

  end: sessionProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/sessions/{id}',
        summary: 'End a session of the logged-in user',
        description: 'Also the current one; its cookie is then cleared.',
        tags: ['Sessions'],
        protect: true,
        setsCookie: true,
        errors: ['FORBIDDEN', 'NOT_FOUND'],
      },
    })
    .input(z.object({ id: sessionId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      if (id !== ctx.session.id) requireUser(ctx.session);
      if (!isUuid(id) || !(await ctx.accounts.sessions.endOf(ctx.session.user, id, callerOf(ctx)))) {
        throw new ServiceError('NOT_FOUND', { message: 'Session not found' });
      }
      if (id === ctx.session.id) ctx.cookies.clearSession();
      return answer('The session has ended.');
    }),
});
