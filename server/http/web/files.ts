import { PassThrough } from 'node:stream';
import Router from '@koa/router';
import type { Context } from 'koa';
import { ServiceError } from '../../errors.ts';
import { typeOfName } from '../../lib/media-types.ts';
import type { ServedFile, ServedFiles } from '../../parts/object-storage/contract.ts';
import { receiveBody } from '../body.ts';

const ROUTE = '/uploads/{name}';
/** The format of generated names: no other name reaches the storage. */
const fileName = /^[a-z0-9-]{1,64}\.[a-z0-9]{1,8}$/;

/** Browsers show these types; files of other types are downloaded. */
const isMedia = (type: string) => /^(?:image|video)\//.test(type);

/** Serves the embedded object storage over HTTP, instead of S3. A name is never reused for other content. */
export function files(served: ServedFiles): Router {
  return new Router()
    .put('/uploads/:name', async (ctx) => {
      await receive(ctx, served);
      ctx.status = 200;
      ctx.body = '';
    })
    .get('/uploads/:name', async (ctx) => {
      const key = keyOf(ctx);
      const file = await served.open(key);
      if (!file) throw new ServiceError('NOT_FOUND');
      describe(ctx, key, file);
      const range = rangeOf(ctx, file.size);
      if (ctx.get('If-None-Match').includes(ctx.response.get('ETag'))) ctx.status = 304;
      else if (ctx.method === 'HEAD') ctx.length = file.size;
      else if (range === 'unsatisfiable') refuseRange(ctx, file);
      else return sendBytes(ctx, file, range);
      await file.close();
    });
}

async function receive(ctx: Context, served: ServedFiles): Promise<void> {
  const key = keyOf(ctx);
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

function keyOf(ctx: Context): string {
  ctx.state['route'] = ROUTE;
  const name = ctx.path.slice('/uploads/'.length);
  if (!fileName.test(name)) throw new ServiceError('NOT_FOUND');
  return `uploads/${name}`;
}

/** Sets the headers shared by every response about a file. */
function describe(ctx: Context, key: string, { modifiedAt }: ServedFile): void {
  const type = typeOfName(key) ?? 'application/octet-stream';
  ctx.status = 200;
  ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
  ctx.set('Accept-Ranges', 'bytes');
  ctx.etag = key;
  ctx.lastModified = modifiedAt;
  if (!isMedia(type)) ctx.attachment(key.slice('uploads/'.length));
  // After `attachment`, which derives a type from the name.
  ctx.type = type;
}

function refuseRange(ctx: Context, { size }: ServedFile): void {
  ctx.status = 416;
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
