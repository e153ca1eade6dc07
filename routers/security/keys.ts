import { z } from 'zod';
import { KEY_PREFIX, type ListedKey, MAX_KEYS } from '../../server/access/index.ts';
import { scopeNames, scopes } from '../../server/shared/scopes.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { toUnixSeconds, toUnixSecondsOrNull, unixSeconds } from '../schemas/unix-seconds.ts';
import { callerOf, recentProcedure, router, sessionProcedure, userProcedure } from '../trpc.ts';

const keyId = z.string().meta({ example: '02KqT8YzJv0aP3mWfR7xLd' });

const descriptions = scopeNames.map((name) => `\`${name}\`: ${scopes[name]}`).join('; ');
const scopeList = z.array(z.enum(scopeNames)).meta({ description: descriptions, example: ['profile:read'] });

const accessKey = z
  .object({
    id: keyId,
    prefix: z.string().meta({ description: 'How the key begins', example: `${KEY_PREFIX}02KqT8YzJv0aP3mWfR7xLd_` }),
    name: z.string().meta({ example: 'Backup' }),
    scopes: scopeList,
    createdAt: unixSeconds,
    expiresAt: unixSeconds.nullable().meta({ description: 'Unix seconds; null: it does not expire' }),
    lastUsedAt: unixSeconds.nullable().meta({ description: 'Unix seconds, to the minute; null before the first use' }),
  })
  .meta({ id: 'AccessKey' });

const toListed = ({ id, name, scopes: given, createdAt, expiresAt, lastUsedAt }: ListedKey) => ({
  id,
  prefix: `${KEY_PREFIX}${id}_`,
  name,
  scopes: given,
  createdAt: toUnixSeconds(createdAt),
  expiresAt: toUnixSecondsOrNull(expiresAt),
  lastUsedAt: toUnixSecondsOrNull(lastUsedAt),
});

export const keys = router({
  list: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/keys',
        summary: 'The access keys of the logged-in user, newest first',
        description: `At most ${MAX_KEYS}. Expired ones are among them, until they are revoked.`,
        tags: ['Access keys'],
        protect: true,
        errors: [],
      },
    })
    .output(z.object({ data: z.array(accessKey) }))
    .query(async ({ ctx }) => ({ data: (await ctx.access.keys.list(ctx.session.user)).map(toListed) })),

  create: recentProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/keys',
        summary: 'Create an access key',
        description: `\`secret\` is the key, to be sent as \`Authorization: Bearer\`. It is returned only here. Mails the user. It ends with its expiry, its revocation, and whatever ends every session. TOO_MANY_KEYS: there are ${MAX_KEYS}.`,
        tags: ['Access keys'],
        protect: true,
        status: 201,
        errors: ['VALIDATION_FAILED', 'REAUTHENTICATION_REQUIRED', 'TOO_MANY_KEYS', 'RATE_LIMITED'],
      },
    })
    .input(
      z.object({
        name: fields.keyName,
        scopes: scopeList.min(1).max(scopeNames.length),
        expiresInDays: z.int().min(1).max(3650).optional().meta({ description: 'By default it does not expire' }),
      }),
    )
    .output(
      z.object({
        key: accessKey,
        secret: z.string().meta({
          example: `${KEY_PREFIX}02KqT8YzJv0aP3mWfR7xLd_uT3kGv9QmXc2LwRz7NfYp5BsJh8DxKa4EoVi6MqCt1WU3kZ9pb`,
        }),
      }),
    )
    .mutation(async ({ ctx, input }) => {
      const { key, secret } = await ctx.access.keys.create(ctx.session, input, callerOf(ctx));
      return { key: toListed(key), secret };
    }),

  revoke: userProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/keys/{id}',
        summary: 'Revoke an access key of the logged-in user',
        description: 'Requests with it are refused from now on.',
        tags: ['Access keys'],
        protect: true,
        errors: ['FORBIDDEN', 'NOT_FOUND'],
      },
    })
    .input(z.object({ id: keyId }))
    .output(done)
    .mutation(async ({ ctx, input: { id } }) => {
      await ctx.access.keys.revoke(ctx.session, id, callerOf(ctx));
      return answer('The access key was revoked.');
    }),
});
