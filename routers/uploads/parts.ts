import { z } from 'zod';
import type { Session } from '../../server/accounts/sessions/index.ts';
import type { Uploads } from '../../server/uploads/index.ts';
import type { Context } from '../context.ts';
import { sessionProcedure, userProcedure } from '../trpc.ts';

/** At most so many addresses in one answer. */
const MAX_ADDRESSES = 100;

export type UploadContext = Pick<Context, 'limits' | 'uploads'> & { session: Session };

export const uploadKey = z.string().max(64).meta({ example: 'uploads/0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' });

export const confirmed = z.object({
  success: z.literal(true),
  key: z.string(),
  contentType: z.string(),
  size: z.int(),
});

export const toConfirmed = ({ objectKey, contentType, size }: Awaited<ReturnType<Uploads['confirm']>>) => ({
  success: true as const,
  key: objectKey,
  contentType,
  size,
});

export const division = {
  size: z.int().meta({ description: 'Bytes of each part but the last', example: 5_242_880 }),
  count: z.int().meta({ description: 'The parts are numbered from 1', example: 205 }),
};

/** Counts a call that asks the storage. */
export const countCheck = ({ limits, session }: UploadContext) => limits.enforce('uploadCheck', session.user.id);

/** Files above 100 MB, in parts. Part of the router `upload`. */
export const partProcedures = {
  parts: sessionProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'GET',
        path: '/api/upload/parts',
        summary: 'The parts of a file that have arrived',
        tags: ['Uploads'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ key: uploadKey }))
    .output(z.object({ ...division, stored: z.array(z.int()).meta({ description: 'Numbers of parts, ascending' }) }))
    .query(async ({ ctx, input }) => {
      await countCheck(ctx);
      return ctx.uploads.storedParts(ctx.session.user.id, input.key);
    }),

  presignParts: userProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'POST',
        path: '/api/upload/parts',
        summary: 'Get addresses to upload parts of a file to',
        description:
          'For a file that `upload.presign` answered with `parts`: the first call within an hour, others for 24 hours. PUT each part to its presignedUrl within expiresIn seconds, with exactly its size as Content-Length, and then call `upload.complete`. A part may be sent again.',
        tags: ['Uploads'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'NOT_FOUND', 'RATE_LIMITED'],
      },
    })
    .input(
      z.object({
        key: uploadKey,
        parts: z.array(z.int().min(1)).min(1).max(MAX_ADDRESSES).meta({ description: 'Numbers of parts' }),
      }),
    )
    .output(
      z.object({
        success: z.literal(true),
        addresses: z.array(z.object({ part: z.int(), size: z.int(), presignedUrl: z.string() })),
        expiresIn: z.int(),
      }),
    )
    .mutation(async ({ ctx, input: { key, parts } }) => {
      const { user } = ctx.session;
      await ctx.limits.enforce('uploadParts', user.id);
      const presigned = await ctx.uploads.presignParts(user.id, key, parts, () => countCheck(ctx));
      return { success: true as const, ...presigned };
    }),

  complete: userProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'POST',
        path: '/api/upload/complete',
        summary: 'Join the parts of a file, and check it against its declaration',
        description:
          'May be repeated. If a part is missing, it is refused with 400 and nothing changes. A file that does not match its declaration is deleted at once and refused with 400.',
        tags: ['Uploads'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'NOT_FOUND', 'RATE_LIMITED', 'UPLOAD_QUARANTINED'],
      },
    })
    .input(z.object({ key: uploadKey }))
    .output(confirmed)
    .mutation(async ({ ctx, input }) => {
      await countCheck(ctx);
      return toConfirmed(await ctx.uploads.complete(ctx.session.user.id, input.key));
    }),
};
