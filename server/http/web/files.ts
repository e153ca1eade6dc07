import Router from '@koa/router';
import type { Context } from 'koa';
import { ServiceError } from '../../errors.ts';
import { typeOfName } from '../../media-types.ts';
import type { ServedFiles } from '../../parts/object-storage/contract.ts';

const ROUTE = '/uploads/{name}';
/** The form of our file names: no other name is looked up. */
const fileName = /^[a-z0-9-]{1,64}\.[a-z0-9]{1,8}$/;

/** The embedded object storage over HTTP, in place of S3. Every name is used for one content only. */
export function files(served: ServedFiles): Router {
  const keyOf = (ctx: Context) => {
    ctx.state['route'] = ROUTE;
    const name = ctx.path.slice('/uploads/'.length);
    if (!fileName.test(name)) throw new ServiceError('NOT_FOUND');
    return `uploads/${name}`;
  };

  return new Router()
    .put('/uploads/:name', async (ctx) => {
      await served.receive({
        key: keyOf(ctx),
        query: new URLSearchParams(ctx.querystring),
        contentType: ctx.get('Content-Type'),
        contentLength: ctx.request.length,
        body: ctx.req,
      });
      ctx.status = 200;
      ctx.body = '';
    })
    .get('/uploads/:name', async (ctx) => {
      const key = keyOf(ctx);
      const file = await served.open(key);
      if (!file) throw new ServiceError('NOT_FOUND');
      const type = typeOfName(key) ?? 'application/octet-stream';
      ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
      ctx.set('Accept-Ranges', 'bytes');
      ctx.etag = key;
      ctx.lastModified = file.modifiedAt;
      const isKnown = ctx.get('If-None-Match').includes(ctx.response.get('ETag'));
      ctx.type = type;
      if (!/^(?:image|video)\//.test(type)) ctx.attachment(key.slice('uploads/'.length));
      ctx.type = type;
      ctx.status = 200;
      if (isKnown || ctx.method === 'HEAD') {
        await file.close();
        if (isKnown) ctx.status = 304;
        else ctx.length = file.size;
        return;
      }
      const range = rangeOf(ctx, file.size);
      if (range === 'unsatisfiable') {
        await file.close();
        ctx.set('Content-Range', `bytes */${file.size}`);
        ctx.status = 416;
        ctx.body = '';
        return;
      }
      if (range) {
        ctx.status = 206;
        ctx.set('Content-Range', `bytes ${range.start}-${range.end}/${file.size}`);
      }
      const { start, end } = range ?? { start: 0, end: file.size - 1 };
      ctx.body = file.read({ start, end });
      ctx.type = type;
      ctx.length = end - start + 1;
    });
}

type Range = { start: number; end: number };

/** RFC 9110 section 14: a single range; for several, or another unit, the whole file is the answer. */
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
