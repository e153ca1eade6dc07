import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type Koa from 'koa';

/** Of storages that list them: all but the last part of a file have so many bytes. */
const MIN_PART_BYTES = 5 * 1024 ** 2;

const textOf = (file: string) => readFile(file, 'utf8').catch(() => undefined);

/**
 * What s3rver lacks of multipart uploads: it lists and aborts none, joins whatever is there, and takes parts of uploads that
 * do not exist.
 */
export function multipartUploads(directory: string, bucket: string) {
  const root = join(directory, bucket, '._S3rver_uploads');
  const joining = new Map<string, Promise<unknown>>();

  const uploads = async () => {
    const ids = await readdir(root).catch(() => []);
    const found = await Promise.all(ids.map(async (id) => ({ id, key: await textOf(join(root, id, 'key')) })));
    return found.filter((upload): upload is { id: string; key: string } => upload.key !== undefined);
  };

  const partsOf = async (id: string) => {
    const names = await readdir(join(root, id)).catch(() => []);
    const parts = names.filter((name) => /^\d+$/.test(name)).map(Number);
    const found = await Promise.all(
      parts.map(async (part) => ({
        part,
        etag: await textOf(join(root, id, `${part}.md5`)),
        size: (await stat(join(root, id, String(part)))).size,
      })),
    );
    return found.filter(({ etag }) => etag !== undefined).sort((a, b) => a.part - b.part);
  };

  const refuse = (ctx: Koa.Context, status: number, code: string) => {
    ctx.status = status;
    ctx.body = `<Error><Code>${code}</Code></Error>`;
  };

  const joinParts = async (ctx: Koa.Context, id: string, next: Koa.Next) => {
    const parts = await partsOf(id);
    if (parts.length === 0) return refuse(ctx, 404, 'NoSuchUpload');
    if (parts.slice(0, -1).some(({ size }) => size < MIN_PART_BYTES)) return refuse(ctx, 400, 'EntityTooSmall');
    await next();
  };

  /** One call after the other: s3rver joins twice what is joined at once. */
  const inTurn = (id: string, work: () => Promise<unknown>): Promise<unknown> => {
    const done = (joining.get(id) ?? Promise.resolve()).catch(() => undefined).then(work);
    joining.set(id, done);
    return done;
  };

  const sendPart = async (ctx: Koa.Context, id: string, next: Koa.Next) => {
    const part = join(root, id, String(ctx.query['partNumber']));
    try {
      await next();
    } finally {
      // s3rver keeps what arrived before a connection broke.
      if (!ctx.req.complete) await Promise.all([part, `${part}.md5`].map((file) => rm(file, { force: true })));
    }
  };

  const middleware: Koa.Middleware = async (ctx, next) => {
    const { uploadId, prefix } = ctx.query;
    const key = decodeURIComponent(ctx.path.slice(`/${bucket}/`.length));
    if (ctx.method === 'GET' && 'uploads' in ctx.query) {
      const found = (await uploads()).filter((upload) => upload.key.startsWith(String(prefix)));
      const elements = found.map(
        (upload) => `<Upload><Key>${upload.key}</Key><UploadId>${upload.id}</UploadId></Upload>`,
      );
      ctx.body = `<ListMultipartUploadsResult>${elements.join('')}</ListMultipartUploadsResult>`;
      return;
    }
    if (uploadId === undefined) return next();
    const id = String(uploadId);
    if (!(await uploads()).some((upload) => upload.id === id && upload.key === key)) refuse(ctx, 404, 'NoSuchUpload');
    else if (ctx.method === 'PUT') await sendPart(ctx, id, next);
    // The addresses of parts are for PUT only.
    else if ('X-Amz-Signature' in ctx.query) refuse(ctx, 403, 'SignatureDoesNotMatch');
    else if (ctx.method === 'POST') await inTurn(id, () => joinParts(ctx, id, next));
    else if (ctx.method === 'GET') {
      const elements = (await partsOf(id)).map(
        ({ part, etag, size }) =>
          `<Part><PartNumber>${part}</PartNumber><ETag>&quot;${etag}&quot;</ETag><Size>${size}</Size></Part>`,
      );
      ctx.body = `<ListPartsResult>${elements.join('')}</ListPartsResult>`;
    } else if (ctx.method === 'DELETE') {
      await rm(join(root, id), { recursive: true, force: true });
      ctx.status = 204;
    }
  };

  return { middleware, uploads };
}
