import { PassThrough } from 'node:stream';
import Router from '@koa/router';
import type { Context } from 'koa';
import type { Config } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import { typeOfName } from '../../lib/media-types.ts';
import {
  attachmentOf,
  cacheControlOf,
  PENDING,
  prefixes,
  type ServedFile,
  type ServedFiles,
} from '../../parts/object-storage/contract.ts';
import { receiveBody } from '../bodies/body.ts';

/** The format of generated names, with the width of a variant: no other name reaches the storage. */
const fileName = /^[a-z0-9-]{1,64}(?:_\d{1,5})?\.[a-z0-9]{1,8}$/;

/** Browsers show these types; files of other types are downloaded. */
const isMedia = (type: string) => /^(?:image|video)\//.test(type);

/**
 * Serves the embedded object storage over HTTP, instead of S3. A name is never reused for other content. With a scanner files
 * are sent to PENDING.
 */
export function files(served: ServedFiles, { scan }: Pick<Config, 'scan'>): Router {
  const router = new Router();
  for (const prefix of [...Object.values(prefixes), ...(scan ? [PENDING] : [])])
    router
      .put(`/${prefix}:name`, async (ctx) => {
        await receive(ctx, keyOf(ctx, prefix), served);
        ctx.status = 200;
        ctx.body = '';
      })
      .get(`/${prefix}:name`, (ctx) => send(ctx, keyOf(ctx, prefix), served));
  return router;
}

async function send(ctx: Context, key: string, served: ServedFiles): Promise<void> {
  const query = new URLSearchParams(ctx.querystring);
  // As in S3, a presigned address is for GET only.
  if (ctx.method === 'HEAD' && query.has('signature')) throw new ServiceError('FORBIDDEN');
  const file = await served.open(key, query);
  if (!file) throw new ServiceError('NOT_FOUND');
  describe(ctx, key, file);
  const range = rangeOf(ctx, file.size);
  if (ctx.get('If-None-Match').includes(ctx.response.get('ETag'))) ctx.status = 304;
  else if (ctx.method === 'HEAD') ctx.length = file.size;
  else if (range === 'unsatisfiable') refuseRange(ctx, file);
  else return sendBytes(ctx, file, range);
  await file.close();
}

async function receive(ctx: Context, key: string, served: ServedFiles): Promise<void> {
  // Node never ends the reader of an answered request; this stream ends with the body.
  const body = ctx.req.pipe(new PassThrough());
  const stored = served.receive({
    key,
    query: new URLSearchParams(ctx.querystring),
    contentType: ctx.get('Content-Type'),
    contentLength: ctx.request.length,
    body,
  });
  try {
    await receiveBody(ctx.req, () => stored, 'file');
  } catch (error) {
    body.destroy();
    // Fails for the same cause.
    await stored.catch(() => undefined);
    throw error;
  }
}

function keyOf(ctx: Context, prefix: string): string {
  ctx.state['route'] = `/${prefix}{name}`;
  const name = ctx.path.slice(`/${prefix}`.length);
  if (!fileName.test(name)) throw new ServiceError('NOT_FOUND');
  return prefix + name;
}

/** Sets the headers shared by every response about a file. */
function describe(ctx: Context, key: string, { modifiedAt, download }: ServedFile): void {
  const type = typeOfName(key) ?? 'application/octet-stream';
  ctx.status = 200;
  ctx.set('Cache-Control', cacheControlOf(key));
  ctx.set('Accept-Ranges', 'bytes');
  // On the origin of the accounts: what a browser shows of a file has no access to it.
  ctx.append('Content-Security-Policy', 'sandbox');
  ctx.etag = key;
  ctx.lastModified = modifiedAt;
  if (download !== undefined) ctx.set('Content-Disposition', attachmentOf(download));
  else if (!isMedia(type)) ctx.attachment(key);
  // After `attachment`, which derives a type from the name.
  ctx.type = type;
}

function refuseRange(ctx: Context, { size }: ServedFile): void {
  ctx.status = 416;
  // A shared cache would give it to all.
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Range', `bytes */${size}`);
  ctx.body = '';
}

function sendBytes(ctx: Context, file: ServedFile, range: Range | undefined): void {
  const { start, end } = range ?? { start: 0, end: file.size - 1 };
  if (range) {
    ctx.status = 206;
    ctx.set('Content-Range', `bytes ${start}-${end}/${file.size}`);
  }
  ctx.body = file.read({ start, end });
  ctx.length = end - start + 1;
}

type Range = { start: number; end: number };

/** RFC 9110 section 14: a single range. Several ranges, or another unit, get the whole file. */
function rangeOf(ctx: Context, size: number): Range | 'unsatisfiable' | undefined {
  const ifRange = ctx.get('If-Range');
  if (ifRange && ifRange !== ctx.response.get('ETag')) return undefined;
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(ctx.get('Range')) ?? [];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== '' && last !== '' && Number(first) > Number(last)) return undefined;
  return start < size ? { start, end } : 'unsatisfiable';
}
