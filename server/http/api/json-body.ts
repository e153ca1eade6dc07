import type { Context } from 'koa';
import { ServiceError } from '../../errors.ts';
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
    throw new ServiceError('VALIDATION_FAILED', {
      details: { body: { message: 'Must be a JSON object', rule: 'invalid_type' } },
    });
  }
  return body;
}
