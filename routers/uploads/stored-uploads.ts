import { z } from 'zod';
import type { ListedUpload } from '../../server/uploads/index.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { callerOf, sessionProcedure } from '../trpc.ts';

const PREFIX = 'uploads/';
const nameOf = (objectKey: string) => objectKey.slice(PREFIX.length);

export const listed = z.object({
  name: z
    .string()
    .meta({ description: 'The input of upload.remove', example: '0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' }),
  key: z.string(),
  url: z.string(),
  contentType: z.string(),
  size: z.int().meta({ description: 'Bytes' }),
  purpose: z.enum(['direct', 'avatar', 'post']).meta({ description: 'direct: sent to a presigned address' }),
  state: z.enum(['pending', 'stored', 'replaced']).meta({
    description:
      'pending: the address was issued, its upload is checked after it expires; stored: for good; replaced: an avatar that is deleted a day after no profile shows it any more',
  }),
  createdAt: unixSeconds,
});

export const toListed = ({ objectKey, url, contentType, size, purpose, state, createdAt }: ListedUpload) => ({
  name: nameOf(objectKey),
  key: objectKey,
  url,
  contentType,
  size,
  purpose,
  state: state === 'expected' ? ('pending' as const) : state === 'replaced' ? state : ('stored' as const),
  createdAt: toUnixSeconds(createdAt),
});

/** `<milliseconds>.<name>` of the last upload on a page. */
const cursorPattern = /^(\d{1,15})\.([a-z0-9-]{1,64}\.[a-z0-9]{1,8})$/;

function toCursor(text: string) {
  const [, createdAt = '', name = ''] = cursorPattern.exec(text) ?? [];
  return { createdAt: Number(createdAt), objectKey: PREFIX + name };
}

/** A user's stored uploads: usage, list and deletion. Part of the router `upload`. */
export const storedUploadProcedures = {
  usage: sessionProcedure
    .meta({
      scope: 'uploads:read',
      openapi: {
        method: 'GET',
        path: '/api/upload',
        summary: 'The storage usage and quota of the logged-in user',
        description:
          'Direct uploads count from their declaration, images from their storage, both until they are deleted.',
        tags: ['Uploads'],
        protect: true,
        errors: [],
      },
    })
    .output(
      z.object({
        used: z.int().meta({ description: 'Bytes' }),
        quota: z.int().meta({ description: 'Bytes' }),
        files: z.int(),
      }),
    )
    .query(async ({ ctx }) => {
      const { used, quota, files } = await ctx.uploads.usage(ctx.session.user.id);
      return { used, quota, files };
    }),

  list: sessionProcedure
    .meta({
      scope: 'uploads:read',
      openapi: {
        method: 'GET',
        path: '/api/uploads',
        summary: 'The uploads of the logged-in user, newest first',
        tags: ['Uploads'],
        protect: true,
        errors: ['VALIDATION_FAILED'],
      },
    })
    .input(
      z
        .object({
          limit: fields.pageLimit,
          cursor: z
            .string()
            .regex(cursorPattern, { error: 'Must be a cursor from an earlier page' })
            .optional()
            .meta({ description: 'nextCursor of the previous page' }),
        })
        .optional(),
    )
    .output(
      z.object({
        data: z.array(listed),
        nextCursor: z.string().optional().meta({ description: 'Absent on the last page' }),
      }),
    )
    .query(async ({ ctx, input: { limit = fields.MAX_PAGE, cursor } = {} }) => {
      const after = cursor === undefined ? undefined : toCursor(cursor);
      const { uploads, more } = await ctx.uploads.list(ctx.session.user.id, { limit, after });
      return {
        data: uploads.map(toListed),
        ...(more && { nextCursor: `${more.createdAt}.${nameOf(more.objectKey)}` }),
      };
    }),

  remove: sessionProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'DELETE',
        path: '/api/uploads/{name}',
        summary: 'Delete an upload of the logged-in user',
        description:
          'Its bytes stop counting at once. The profile of the user no longer shows it. Data that is still sent to its address is deleted after the address has expired.',
        tags: ['Uploads'],
        protect: true,
        errors: ['NOT_FOUND'],
      },
    })
    .input(z.object({ name: z.string().meta({ example: '0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' }) }))
    .output(done)
    .mutation(async ({ ctx, input: { name } }) => {
      await ctx.uploads.remove(ctx.session.user.id, PREFIX + name, callerOf(ctx));
      return answer('The upload was deleted.');
    }),
};
