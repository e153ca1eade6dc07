import { z } from 'zod';
import type { ListedIdentity } from '../../server/accounts/providers/index.ts';
import { answer, done } from '../schemas/done.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { callerOf, recentProcedure, router, sessionProcedure } from '../trpc.ts';

const identityId = z.string().meta({ example: '1b4e28ba-2fa1-4d2b-883f-0016d3cca427' });

export const listed = z.object({
  id: identityId,
  provider: z.string().meta({ description: 'The name of the identity provider', example: 'github' }),
  email: z.string().meta({
    description: 'The last address from the provider; empty without one',
    example: 'ada@example.com',
  }),
  createdAt: unixSeconds,
});

export const toListed = ({ id, provider, email, createdAt }: ListedIdentity) => ({
  id,
  provider,
  email: email ?? '',
  createdAt: toUnixSeconds(createdAt),
});

export const identities = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/identities',
        summary: 'The identities at providers by which the user logs in, oldest first, and whether there is a password',
        description: 'At most 100 identities. Another is linked by GET /auth/{provider}?link=1.',
        tags: ['Identities'],
        protect: true,
        errors: [],
      },
    })
    .output(
      z.object({
        data: z.array(listed),
        hasPassword: z.boolean().meta({ description: 'Whether the user can log in with a password' }),
      }),
    )
    .query(async ({ ctx }) => {
      const { identities, hasPassword } = await ctx.accounts.providers.links.list(ctx.session.user.id);
      return { data: identities.map(toListed), hasPassword };
    }),

  unlink: recentProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/identities/{id}',
        summary: 'Unlink an identity of the logged-in user',
        description:
          'Ends every session that was opened through its provider, except the one of this call, and mails the user. LAST_LOGIN_METHOD for the last login method: a password, a passkey, or an identity at a configured provider.',
        tags: ['Identities'],
        protect: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'LAST_LOGIN_METHOD'],
      },
    })
    .input(z.object({ id: identityId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.providers.links.unlink(ctx.session, id, callerOf(ctx));
      return answer('The login was unlinked.');
    }),
});
