import type { Context } from 'koa';
import { lazy } from '../../lib/lazy.ts';
import { hasBody } from './body.ts';
import { parseBody } from './parse-body.ts';

/** Less than the headers of an answer that proxies accept: the parameters come back in `Location`. */
const LIMIT = '4kb';

const parser = lazy(async () => {
  const { koaBody } = await import('koa-body');
  return koaBody({ formLimit: LIMIT, urlencoded: true, json: false, text: false, multipart: false });
});

/** The parameters of a request that browsers send as GET, or as a form. */
export async function formParameters(ctx: Context): Promise<object> {
  if (ctx.method === 'GET') return ctx.query;
  const body = hasBody(ctx.req) ? await parseBody(ctx, await parser()) : undefined;
  return typeof body === 'object' && body !== null ? body : {};
}
