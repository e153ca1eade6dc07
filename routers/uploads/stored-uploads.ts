import { z } from 'zod';
import type { UploadState } from '../../entities/index.ts';
import { type FileAddress, keyIn, type ListedUpload, nameOf } from '../../server/uploads/index.ts';
import { answer, done } from '../schemas/done.ts';
import * as fields from '../schemas/fields.ts';
import { invalidCursor, MAX_PAGE, pageLimit, pageOf } from '../schemas/page.ts';
import { toUnixSeconds, unixSeconds } from '../schemas/unix-seconds.ts';
import { placeholder, variant } from '../schemas/variant.ts';
import { callerOf, sessionProcedure, userProcedure } from '../trpc.ts';

export const listed = z.object({
  name: z
    .string()
    .meta({ description: 'The input of upload.remove', example: '0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' }),
  key: z.string(),
  visibility: fields.visibility,
  url: z.string().meta({ description: 'Empty for a private file: see `upload.address`' }),
  contentType: z.string(),
  size: z.int().meta({ description: 'Bytes' }),
  purpose: z.enum(['direct', 'avatar', 'post']).meta({ description: 'direct: sent to a presigned address' }),
  state: z.enum(['pending', 'stored', 'replaced', 'quarantined']).meta({
    description:
      'pending: the address was issued, its upload is checked after it expires, or waits for the scanner; stored: for good; replaced: an avatar that is deleted a day after no profile shows it any more; quarantined: the scanner found malware, and nobody can read it',
  }),
  finding: z.string().optional().meta({ description: 'What the scanner found. Only of a quarantined file' }),
  createdAt: unixSeconds,
  width: z
    .int()
    .optional()
    .meta({ description: 'Pixels. Only images that the service has converted have this and the following fields' }),
  height: z.int().optional(),
  variants: z.array(variant).optional().meta({ description: 'Smaller pictures, by width' }),
  placeholder: placeholder.optional(),
});

const shownState = {
  expected: 'pending',
  pending: 'pending',
  kept: 'stored',
  replaced: 'replaced',
  infected: 'quarantined',
  // Not listed.
  doomed: 'stored',
} as const satisfies Record<UploadState, string>;

export const toListed = ({
  objectKey,
  visibility,
  url,
  contentType,
  size,
  purpose,
  state,
  finding,
  createdAt,
  ...picture
}: ListedUpload) => ({
  name: nameOf(objectKey),
  key: objectKey,
  visibility,
  url,
  contentType,
  size,
  purpose,
  state: shownState[state],
  ...(finding !== null && { finding }),
  createdAt: toUnixSeconds(createdAt),
  ...pictureOf(picture),
});

const pictureOf = ({
  width,
  height,
  variants,
  placeholder,
}: Pick<ListedUpload, 'width' | 'height' | 'variants' | 'placeholder'>) =>
  width === null || height === null || placeholder === null || !variants
    ? {}
    : { width, height, variants, placeholder };

export const uploadName = z.string().meta({ example: '0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.png' });

export const addressOptions = {
  expiresIn: z.int().min(60).max(3600).default(300).meta({ description: 'Seconds' }),
  download: fields.filename.optional().meta({ description: 'The name of the saved file', example: 'invoice.pdf' }),
};

export const fileAddress = z.object({
  url: z.string(),
  expiresAt: unixSeconds,
  variants: z.array(variant).optional().meta({ description: 'Of an image: smaller pictures, by width' }),
});

export const toFileAddress = ({ expiresAt, ...address }: FileAddress) => ({
  ...address,
  expiresAt: toUnixSeconds(expiresAt),
});

/** `<milliseconds>.<name>` of the last upload on a page, `<milliseconds>.private/<name>` of a private one. */
const cursorPattern = /^(\d{1,15})\.(private\/)?([a-z0-9-]{1,64}\.[a-z0-9]{1,8})$/;

function toCursor(text: string) {
  const [, createdAt = '', prefix, name = ''] = cursorPattern.exec(text) ?? [];
  return { createdAt: Number(createdAt), objectKey: keyIn(prefix ? 'private' : 'public', name) };
}

const cursorAfter = ({ createdAt, objectKey, visibility }: ListedUpload): string =>
  `${createdAt}.${visibility === 'private' ? 'private/' : ''}${nameOf(objectKey)}`;

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
          'Direct uploads count from their declaration, images from their storage, both until they are deleted; direct uploads at least until their address has expired.',
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
          limit: pageLimit,
          cursor: z
            .string()
            .refine((text) => cursorPattern.test(text), invalidCursor)
            .optional()
            .meta({ description: 'nextCursor of the previous page' }),
        })
        .optional(),
    )
    .output(pageOf(listed))
    .query(async ({ ctx, input: { limit = MAX_PAGE, cursor } = {} }) => {
      const after = cursor === undefined ? undefined : toCursor(cursor);
      const { uploads, more } = await ctx.uploads.list(ctx.session.user.id, { limit, after });
      return {
        data: uploads.map(toListed),
        ...(more && { nextCursor: cursorAfter(more) }),
      };
    }),

  remove: userProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'DELETE',
        path: '/api/uploads/{name}',
        summary: 'Delete an upload of the logged-in user',
        description:
          'Its bytes stop counting at once; while its address is valid, after that has expired. The profile of the user no longer shows it. Data that is still sent to its address is deleted after the address has expired. A file in quarantine is not deleted.',
        tags: ['Uploads'],
        protect: true,
        errors: ['FORBIDDEN', 'NOT_FOUND', 'UPLOAD_QUARANTINED'],
      },
    })
    .input(z.object({ name: uploadName }))
    .output(done)
    .mutation(async ({ ctx, input: { name } }) => {
      await ctx.uploads.remove(ctx.session.user.id, name, callerOf(ctx));
      return answer('The upload was deleted.');
    }),

  address: userProcedure
    .meta({
      scope: 'uploads:read',
      openapi: {
        method: 'POST',
        path: '/api/uploads/{name}/address',
        summary: 'An address at which a file of the logged-in user can be read for some minutes',
        description:
          'For private files; everybody who has the address can read it. It is for GET only. With `download`, browsers save the file under this name.',
        tags: ['Uploads'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'NOT_FOUND', 'UPLOAD_PENDING', 'UPLOAD_QUARANTINED'],
      },
    })
    .input(z.object({ name: uploadName, ...addressOptions }))
    .output(fileAddress)
    .mutation(async ({ ctx, input: { name, ...options } }) =>
      toFileAddress(await ctx.uploads.address(name, options, ctx.session.user.id)),
    ),

  publish: userProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'POST',
        path: '/api/uploads/{name}/publish',
        summary: 'Store a public copy of a private file of the logged-in user',
        description: 'The private file stays. Both count against the quota.',
        tags: ['Uploads'],
        protect: true,
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'NOT_FOUND', 'UPLOAD_PENDING', 'UPLOAD_QUARANTINED', 'RATE_LIMITED'],
      },
    })
    .input(z.object({ name: uploadName }))
    .output(z.object({ upload: listed }))
    .mutation(async ({ ctx, input: { name } }) => {
      const { user } = ctx.session;
      await ctx.limits.enforce('upload', user.id);
      return { upload: toListed(await ctx.uploads.publish(user.id, name, callerOf(ctx))) };
    }),
};
