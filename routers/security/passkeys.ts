import { z } from 'zod';
import type { ListedPasskey } from '../server/accounts/passkeys.ts';
import { answer, done } from './done.ts';
import * as fields from './fields.ts';
import { callerOf, recentProcedure, router, sessionProcedure } from './trpc.ts';
import { toUnixSeconds, unixSeconds } from './unix-seconds.ts';
import { creationOptions, registrationResponse } from './webauthn.ts';

const passkeyId = z.string().meta({ example: '01893b2e-7f5a-7c3d-9a52-1f0f6b6f3c11' });

const listed = z.object({
  id: passkeyId,
  name: z.string().meta({ example: 'My laptop' }),
  createdAt: unixSeconds,
  lastUsedAt: unixSeconds.nullable().meta({ description: 'Unix seconds; null before the first use' }),
});

const toListed = ({ id, name, createdAt, lastUsedAt }: ListedPasskey) => ({
  id,
  name,
  createdAt: toUnixSeconds(createdAt),
  lastUsedAt: lastUsedAt == null ? null : toUnixSeconds(lastUsedAt),
});

export const passkeys = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/passkeys',
        summary: 'The passkeys of the logged-in user, oldest first',
        description: 'At most 10.',
        tags: ['Passkeys'],
        protect: true,
        errors: [],
      },
    })
    .output(z.object({ data: z.array(listed) }))
    .query(async ({ ctx }) => ({ data: (await ctx.accounts.listPasskeys(ctx.session.user.id)).map(toListed) })),

  beginRegistration: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/passkeys/options',
        summary: 'Begin to add a passkey',
        description:
          'Answers the options for `navigator.credentials.create`, whose challenge can be answered once, within five minutes, in this session and by this browser: sets its cookie `auth_browser`. With 10 passkeys it is refused.',
        tags: ['Passkeys'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .output(creationOptions)
    .mutation(async ({ ctx }) => {
      const options = await ctx.accounts.beginPasskeyRegistration(ctx.session, ctx.browser(), callerOf(ctx));
      ctx.cookies.setBrowser(ctx.browser());
      return options;
    }),

  finishRegistration: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/passkeys',
        summary: 'Add a passkey to the logged-in user',
        description:
          'Takes what `navigator.credentials.create` has answered, as JSON, and the user’s own name for the passkey; without one it is named after its authenticator. Mails the user.',
        tags: ['Passkeys'],
        protect: true,
        status: 201,
        errors: ['VALIDATION_FAILED', 'REAUTHENTICATION_REQUIRED'],
      },
    })
    .input(registrationResponse.extend({ name: fields.passkeyName.optional() }))
    .output(done.extend({ passkey: listed }))
    .mutation(async ({ ctx, input: { name, ...response } }) => {
      const registration = { response, name, browser: ctx.browser() };
      const passkey = await ctx.accounts.finishPasskeyRegistration(ctx.session, registration, callerOf(ctx));
      return { ...answer('You can log in with this passkey now.'), passkey: toListed(passkey) };
    }),

  rename: sessionProcedure
    .meta({
      openapi: {
        method: 'PUT',
        path: '/api/passkeys/{id}',
        summary: 'Give a passkey of the logged-in user another name',
        tags: ['Passkeys'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'NOT_FOUND'],
      },
    })
    .input(z.object({ id: passkeyId, name: fields.passkeyName }))
    .output(done)
    .mutation(async ({ ctx, input: { id, name } }) => {
      await ctx.accounts.renamePasskey(ctx.session.user.id, id, name);
      return answer('The passkey has its new name.');
    }),

  remove: recentProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/passkeys/{id}',
        summary: 'Remove a passkey of the logged-in user',
        description:
          'Ends every session that was opened by a passkey, but for the one of this call, and mails the user. The last way to log in stays: a password, a passkey, or an identity at a provider that there is.',
        tags: ['Passkeys'],
        protect: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'LAST_LOGIN_METHOD'],
      },
    })
    .input(z.object({ id: passkeyId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.removePasskey(ctx.session, id, callerOf(ctx));
      return answer('The passkey is removed.');
    }),
});
