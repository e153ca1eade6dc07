import { z } from 'zod';
import type { ListedPasskey, RegistrationMode } from '../../server/accounts/credentials/index.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { creationOptions, registrationResponse } from '../schemas/webauthn.ts';
import { callerOf, recentProcedure, router, sessionProcedure, userProcedure } from '../trpc.ts';

const passkeyId = z.string().meta({ example: '01893b2e-7f5a-7c3d-9a52-1f0f6b6f3c11' });

const listed = z.object({
  id: passkeyId,
  credentialId: z.string().meta({ description: 'base64url', example: 'SuUGGwkIIxJrTJbEmXyaUg' }),
  name: z.string().meta({ example: 'My laptop' }),
  createdAt: unixSeconds,
  lastUsedAt: unixSeconds.nullable().meta({ description: 'Unix seconds; null before the first use' }),
});

const toListed = ({ id, credentialId, name, createdAt, lastUsedAt }: ListedPasskey) => ({
  id,
  credentialId,
  name,
  createdAt: toUnixSeconds(createdAt),
  lastUsedAt: lastUsedAt == null ? null : toUnixSeconds(lastUsedAt),
});

const modeOfRegistration = z.enum(['upgrade']).optional().meta({
  description:
    '`upgrade`: the browser adds a passkey by itself after a login by password (`mediation: conditional`). Only in the first five minutes of that session; user presence and verification are optional',
});

const modeIn = (input: { mode?: 'upgrade' | undefined } | undefined): RegistrationMode => input?.mode ?? 'registration';

export const passkeys = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/passkeys',
        summary: 'The passkeys of the logged-in user, oldest first',
        description:
          'At most 10. `rpId`, `userHandle` and the credential ids are what `PublicKeyCredential.signalAllAcceptedCredentials` takes.',
        tags: ['Passkeys'],
        protect: true,
        errors: [],
      },
    })
    .output(
      z.object({
        data: z.array(listed),
        rpId: z.string().meta({ example: 'accounts.example.com' }),
        userHandle: z.string().meta({ description: 'base64url' }),
      }),
    )
    .query(async ({ ctx }) => {
      const { passkeys } = ctx.accounts.credentials;
      const { id } = ctx.session.user;
      return { data: (await passkeys.listPasskeys(id)).map(toListed), ...passkeys.ownerOf(id) };
    }),

  beginRegistration: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/passkeys/options',
        summary: 'Begin to add a passkey',
        description:
          'Returns the options for `navigator.credentials.create`. The challenge is valid once, for five minutes, in this session and browser: sets its cookie `auth_browser`. Refused with 10 passkeys.',
        tags: ['Passkeys'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ mode: modeOfRegistration }).optional())
    .output(creationOptions)
    .mutation(async ({ ctx, input }) => {
      const options = await ctx.accounts.credentials.passkeys.beginPasskeyRegistration(
        ctx.session,
        { mode: modeIn(input), browser: ctx.browser() },
        callerOf(ctx),
      );
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
          'Takes the result of `navigator.credentials.create` as JSON, and a name for the passkey; by default it is named after its authenticator. `mode` as in the request for the options. Mails the user.',
        tags: ['Passkeys'],
        protect: true,
        status: 201,
        errors: ['VALIDATION_FAILED', 'REAUTHENTICATION_REQUIRED', 'RATE_LIMITED'],
      },
    })
    .input(registrationResponse.extend({ name: fields.passkeyName.optional(), mode: modeOfRegistration }))
    .output(done.extend({ passkey: listed }))
    .mutation(async ({ ctx, input: { name, mode, ...response } }) => {
      const registration = { response, name, mode: modeIn({ mode }), browser: ctx.browser() };
      const passkey = await ctx.accounts.credentials.passkeys.finishPasskeyRegistration(
        ctx.session,
        registration,
        callerOf(ctx),
      );
      return { ...answer('You can now log in with this passkey.'), passkey: toListed(passkey) };
    }),

  rename: userProcedure
    .meta({
      openapi: {
        method: 'PUT',
        path: '/api/passkeys/{id}',
        summary: 'Rename a passkey of the logged-in user',
        tags: ['Passkeys'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'NOT_FOUND'],
      },
    })
    .input(z.object({ id: passkeyId, name: fields.passkeyName }))
    .output(done)
    .mutation(async ({ ctx, input: { id, name } }) => {
      await ctx.accounts.credentials.passkeys.renamePasskey(ctx.session.user.id, id, name);
      return answer('The passkey was renamed.');
    }),

  remove: recentProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/passkeys/{id}',
        summary: 'Remove a passkey of the logged-in user',
        description:
          'Ends every session that was opened by a passkey, except the one of this call, and mails the user. LAST_LOGIN_METHOD for the last login method: a password, a passkey, or an identity at a configured provider.',
        tags: ['Passkeys'],
        protect: true,
        errors: ['REAUTHENTICATION_REQUIRED', 'NOT_FOUND', 'LAST_LOGIN_METHOD'],
      },
    })
    .input(z.object({ id: passkeyId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.accounts.credentials.passkeys.removePasskey(ctx.session, id, callerOf(ctx));
      return answer('The passkey was removed.');
    }),
});
