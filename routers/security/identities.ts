import { z } from 'zod';
import type { ListedIdentity } from '../server/accounts/identity-links.ts';
import { answer, done } from './done.ts';
import { callerOf, recentProcedure, router, sessionProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';

const identityId = z.string().meta({ example: '1b4e28ba-2fa1-4d2b-883f-0016d3cca427' });

export const listed = z.object({
  id: identityId,
  provider: z.string().meta({ description: 'The name of the identity provider', example: 'github' }),
  email: z.string().meta({
    description: 'The address that the provider stated last; empty where it has stated none',
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
      const { identities, hasPassword } = await ctx.accounts.listIdentities(ctx.session.user.id);
      return { data: identities.map(toListed), hasPassword };
    }),

  unlink: recentProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/identities/{id}',
        summary: 'Unlink an identity of the logged-in user',
        description:
          'Ends every session that was opened through its provider, but for the one of this call, and mails the user. The last way to log in stays: a password, a passkey, or an identity at a provider that there is.',
        tags: ['Identities'],
        protect: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'LAST_LOGIN_METHOD'],
      },
    })
    .input(z.object({ id: identityId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.unlinkIdentity(ctx.session, id, callerOf(ctx));
      return answer('The login is unlinked.');
    }),
});
