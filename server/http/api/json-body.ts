import type { Context } from 'koa';
import { invalidField, ServiceError } from '../../errors.ts';
import { lazy } from '../../lib/lazy.ts';
import { hasBody } from '../bodies/body.ts';
import { parseBody } from '../bodies/parse-body.ts';

const LIMIT = '100kb';

const parser = lazy(async () => {
  const { koaBody } = await import('koa-body');
  return koaBody({ jsonLimit: LIMIT, multipart: false, urlencoded: false, text: false });
});

/** The JSON object in the body of a request; empty if the request has no body. Rejects with ServiceError. */
export async function readJson(ctx: Context): Promise<object> {
  if (!hasBody(ctx.req)) return {};
  if (!ctx.is('application/json')) throw new ServiceError('UNSUPPORTED_MEDIA_TYPE');
  const body = await parseBody(ctx, await parser());
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw invalidField('body', 'invalid_type', 'Must be a JSON object');
  }
  return body;
}
