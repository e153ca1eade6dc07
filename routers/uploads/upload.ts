import { z } from 'zod';
import { MAX_IMAGE_MEGABYTES, MAX_MEGAPIXELS } from '../../server/shared/image-limits.ts';
import * as fields from '../schemas/fields.ts';
import { placeholder, variant } from '../schemas/variant.ts';
import { callerOf, router, userProcedure } from '../trpc.ts';
import {
  confirmed,
  countCheck,
  division,
  partProcedures,
  toConfirmed,
  type UploadContext,
  uploadKey,
} from './parts.ts';
import { storedUploadProcedures, uploadName } from './stored-uploads.ts';

/** The form of POST /api/upload/image; over /trpc a FormData with the same two fields. Other fields are ignored. */
const imageForm = z
  .instanceof(FormData, { error: 'Must be multipart/form-data' })
  .transform((form): Record<string, string | File | undefined> => Object.fromEntries(form))
  .pipe(
    z.object({
      file: z.file('The part file is missing').meta({
        description: `A JPEG or PNG image of at most ${MAX_IMAGE_MEGABYTES} MB and ${MAX_MEGAPIXELS} megapixels`,
      }),
      type: z
        .enum(['avatar', 'post'], 'The part type must be avatar or post')
        .meta({ description: 'avatar: 512×512, cropped from the centre; post: fits into 1600×1600' }),
      visibility: fields.visibility.default('public'),
    }),
  );

const count = ({ limits, session }: UploadContext) => limits.enforce('upload', session.user.id);

/** Counts the call before the input is read. */
const uploadProcedure = userProcedure.use(async ({ ctx, next }) => {
  await count(ctx);
  return next();
});

/** Refuses an image before it is received if the queue is full; that does not count against the user's limit. */
const imageProcedure = userProcedure.use(async ({ ctx, next }) => {
  ctx.uploads.images.requireRoom(ctx.session.user.id);
  await count(ctx);
  return next();
});

const originalName = (name: string) => [...name].slice(0, 255).join('');

export const upload = router({
  presign: uploadProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'POST',
        path: '/api/upload/presign',
        summary: 'Get an address to upload a file to',
        description:
          'PUT the file to presignedUrl within expiresIn seconds, with exactly the declared Content-Type and Content-Length. No further step is needed: a file that matches its declaration is stored. A file above 100 MB may be sent in parts instead: then the answer has `parts`.',
        tags: ['Uploads'],
        protect: true,
        errorField: 'beside',
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'RATE_LIMITED'],
      },
    })
    .input(
      z.object({
        filename: fields.filename,
        visibility: fields.visibility.default('public'),
        contentType: z.string().max(255).meta({ example: 'image/png' }),
        size: z.int().min(1).meta({ description: 'Bytes', example: 48_213 }),
      }),
    )
    .output(
      z.object({
        success: z.literal(true),
        presignedUrl: z.string(),
        publicUrl: z.string().meta({ description: 'Empty for a private file' }),
        key: z.string(),
        expiresIn: z.int(),
        parts: z.object(division).optional().meta({ description: 'Only above 100 MB: see `upload.presignParts`' }),
      }),
    )
    .mutation(async ({ ctx, input: { contentType, size, visibility } }) => {
      const { presignedUrl, publicUrl, key, expiresIn, parts } = await ctx.uploads.presign(ctx.session.user.id, {
        contentType,
        size,
        visibility,
      });
      return { success: true as const, presignedUrl, publicUrl, key, expiresIn, ...(parts && { parts }) };
    }),

  confirm: userProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'POST',
        path: '/api/upload/confirm',
        summary: 'Check a direct upload against its declaration',
        description: 'Optional. A file that does not match its declaration is deleted at once and refused with 400.',
        tags: ['Uploads'],
        protect: true,
        errorField: 'only',
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'NOT_FOUND', 'RATE_LIMITED', 'UPLOAD_QUARANTINED'],
      },
    })
    .input(z.object({ key: uploadKey }))
    .output(confirmed)
    .mutation(async ({ ctx, input }) => {
      await countCheck(ctx);
      return toConfirmed(await ctx.uploads.confirm(ctx.session.user.id, input.key));
    }),

  image: imageProcedure
    .meta({
      scope: 'uploads:write',
      openapi: {
        method: 'POST',
        path: '/api/upload/image',
        summary: 'Upload an image, which is converted to WebP',
        description: 'Stores the image and changes nothing else: a profile shows it after PUT /api/profile.',
        tags: ['Uploads'],
        protect: true,
        contentTypes: ['multipart/form-data'],
        errorField: 'only',
        errors: ['VALIDATION_FAILED', 'FORBIDDEN', 'RATE_LIMITED'],
      },
    })
    .input(imageForm)
    .output(
      z.object({
        success: z.literal(true),
        url: z.string().meta({ description: 'Empty for a private image' }),
        name: uploadName
          .optional()
          .meta({ description: 'Only of a private image: the input of `upload.address` and `upload.remove`' }),
        originalName: z.string(),
        size: z.int(),
        width: z.int(),
        height: z.int(),
        variants: z.array(variant).meta({ description: 'Smaller pictures, by width' }),
        placeholder,
      }),
    )
    .mutation(async ({ ctx, input: { file, type, visibility } }) => {
      const { url, ...stored } = await ctx.uploads.storeImage(
        ctx.session.user.id,
        { file, purpose: type, visibility },
        callerOf(ctx),
      );
      return { success: true as const, url, originalName: originalName(file.name), ...stored };
    }),

  ...partProcedures,
  ...storedUploadProcedures,
});
