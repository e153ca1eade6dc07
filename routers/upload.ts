import { z } from 'zod';
import type { Session } from '../server/accounts/sessions.ts';
import { MAX_IMAGE_MEGABYTES, MAX_MEGAPIXELS } from '../server/image-limits.ts';
import type { ListedUpload } from '../server/uploads/index.ts';
import type { Context } from './context.ts';
import * as fields from './fields.ts';
import { router, sessionProcedure } from './trpc.ts';
import { done } from './users.ts';

/** The form of POST /api/upload/image; over /trpc a FormData with the same two fields. Anything else in it is ignored. */
const imageForm = z
  .instanceof(FormData, { error: 'Must be multipart/form-data' })
  .transform((form) => Object.fromEntries(form))
  .pipe(
    z.object({
      file: z.file('The part file is missing').meta({
        description: `A JPEG or PNG image of at most ${MAX_IMAGE_MEGABYTES} MB and ${MAX_MEGAPIXELS} megapixels`,
      }),
      type: z
        .enum(['avatar', 'post'], 'The part type must be avatar or post')
        .meta({ description: 'avatar: 512×512, cut from the centre; post: fits into 1600×1600' }),
    }),
  );

type UploadContext = Pick<Context, 'accounts' | 'uploads'> & { session: Session };

const count = ({ accounts, session }: UploadContext) => accounts.limits.enforce('upload', session.user.id);

/** Counts the call before the input is read. */
const uploadProcedure = sessionProcedure.use(async ({ ctx, next }) => {
  await count(ctx);
  return next();
});

/**
 * Refuses an image before it is received when the queue has no room for it; that does not count against the user's
 * limit.
 */
const imageProcedure = sessionProcedure.use(async ({ ctx, next }) => {
  ctx.uploads.images.requireRoom(ctx.session.user.id);
  await count(ctx);
  return next();
});

const PREFIX = 'uploads/';
const nameOf = (objectKey: string) => objectKey.slice(PREFIX.length);

const listed = z.object({
  name: z
    .string()
    .meta({ description: 'What upload.remove takes', example: '0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' }),
  key: z.string(),
  url: z.string(),
  contentType: z.string(),
  size: z.int().meta({ description: 'Bytes' }),
  purpose: z.enum(['direct', 'avatar', 'post']).meta({ description: 'direct: sent to a presigned address' }),
  state: z.enum(['pending', 'stored', 'replaced']).meta({
    description:
      'pending: an address was given out, what was sent there is checked once it has expired; stored: for good; replaced: an avatar that is deleted a day after no profile shows it any more',
  }),
  createdAt: z.int().meta({ description: 'Unix seconds', example: 1_700_000_000 }),
});

const toListed = ({ objectKey, url, contentType, size, purpose, state, createdAt }: ListedUpload) => ({
  name: nameOf(objectKey),
  key: objectKey,
  url,
  contentType,
  size,
  purpose,
  state: state === 'expected' ? ('pending' as const) : state === 'replaced' ? state : ('stored' as const),
  createdAt: Math.floor(createdAt / 1000),
});

/** `<milliseconds>.<name>` of the last upload on a page. */
const cursorPattern = /^(\d{1,15})\.([a-z0-9-]{1,64}\.[a-z0-9]{1,8})$/;

function toCursor(text: string) {
  const [, createdAt = '', name = ''] = cursorPattern.exec(text) ?? [];
  return { createdAt: Number(createdAt), objectKey: PREFIX + name };
}

const originalName = (name: string) => [...name].slice(0, 255).join('');

export const upload = router({
  presign: uploadProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/upload/presign',
        summary: 'Get an address to upload a file to',
        description:
          'PUT the file to presignedUrl within expiresIn seconds, with exactly the declared Content-Type and Content-Length. No further step is needed: a file that is as declared is kept.',
        tags: ['Uploads'],
        protect: true,
        errorField: 'beside',
        errors: ['VALIDATION_FAILED', 'RATE_LIMITED'],
      },
    })
    .input(
      z.object({
        filename: fields.filename,
        contentType: z.string().max(255).meta({ example: 'image/png' }),
        size: z.int().min(1).meta({ description: 'Bytes', example: 48_213 }),
      }),
    )
    .output(
      z.object({
        success: z.literal(true),
        presignedUrl: z.string(),
        publicUrl: z.string(),
        key: z.string(),
        expiresIn: z.int(),
      }),
    )
    .mutation(async ({ ctx, input: { contentType, size } }) => {
      const { presignedUrl, publicUrl, key, expiresIn } = await ctx.uploads.presign(ctx.session.user.id, {
        contentType,
        size,
      });
      return { success: true as const, presignedUrl, publicUrl, key, expiresIn };
    }),

  confirm: sessionProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/upload/confirm',
        summary: 'Ask whether a direct upload is as it was declared',
        description: 'Optional. A file that is not as declared is deleted at once, and 400 says so.',
        tags: ['Uploads'],
        protect: true,
        errorField: 'only',
        errors: ['VALIDATION_FAILED', 'NOT_FOUND'],
      },
    })
    .input(z.object({ key: z.string().max(64).meta({ example: 'uploads/0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' }) }))
    .output(z.object({ success: z.literal(true), key: z.string(), contentType: z.string(), size: z.int() }))
    .mutation(async ({ ctx, input }) => {
      const { objectKey, contentType, size } = await ctx.uploads.confirm(ctx.session.user.id, input.key);
      return { success: true as const, key: objectKey, contentType, size };
    }),

  image: imageProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/api/upload/image',
        summary: 'Upload an image, which is converted to WebP',
        description: 'Stores the image and changes nothing else: a profile shows it after PUT /api/profile.',
        tags: ['Uploads'],
        protect: true,
        contentTypes: ['multipart/form-data'],
        errorField: 'only',
        errors: ['VALIDATION_FAILED', 'RATE_LIMITED'],
      },
    })
    .input(imageForm)
    .output(
      z.object({
        success: z.literal(true),
        url: z.string(),
        originalName: z.string(),
        size: z.int(),
        width: z.int(),
        height: z.int(),
      }),
    )
    .mutation(async ({ ctx, input: { file, type } }) => {
      const { url, size, width, height } = await ctx.uploads.storeImage(ctx.session.user.id, file, type);
      return { success: true as const, url, originalName: originalName(file.name), size, width, height };
    }),

  usage: sessionProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/api/upload',
        summary: 'How much the logged-in user keeps, and may keep',
        description:
          'What was declared counts from then on, what was converted as it is stored, and both until they are gone.',
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
            .meta({ description: 'nextCursor of the page before' }),
        })
        .optional(),
    )
    .output(
      z.object({
        data: z.array(listed),
        nextCursor: z.string().optional().meta({ description: 'Only where more follow' }),
      }),
    )
    .query(async ({ ctx, input: { limit = fields.LARGEST_PAGE, cursor } = {} }) => {
      const after = cursor === undefined ? undefined : toCursor(cursor);
      const { uploads, more } = await ctx.uploads.list(ctx.session.user.id, { limit, after });
      return {
        data: uploads.map(toListed),
        ...(more && { nextCursor: `${more.createdAt}.${nameOf(more.objectKey)}` }),
      };
    }),

  remove: sessionProcedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/api/uploads/{name}',
        summary: 'Delete an upload of the logged-in user',
        description:
          'Its room is free at once. A profile of the user that shows it shows no avatar any more. What is still sent to its address is deleted when that has expired.',
        tags: ['Uploads'],
        protect: true,
        errors: ['NOT_FOUND'],
      },
    })
    .input(z.object({ name: z.string().meta({ example: '0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' }) }))
    .output(done)
    .mutation(async ({ ctx, input: { name } }) => {
      await ctx.uploads.remove(ctx.session.user.id, PREFIX + name);
      return { success: true as const, message: 'The upload is deleted' };
    }),
});
