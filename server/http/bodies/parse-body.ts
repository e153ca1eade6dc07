import type { Context, Middleware } from 'koa';
import { ServiceError } from '../../errors.ts';
import { toServiceError } from '../failures.ts';
import { receiveBody } from './body.ts';

/** What `parser`, a middleware of koa-body, makes of the body. Rejects with ServiceError. */
export async function parseBody(ctx: Context, parser: Middleware): Promise<unknown> {
  const read = () => parser(ctx, async () => undefined);
  await receiveBody(ctx.req, read).catch((error: Error & { status?: number }) => {
    // An error without a status comes from decompression: the body does not match its Content-Encoding.
    throw error.status === undefined ? new ServiceError('VALIDATION_FAILED', { cause: error }) : toServiceError(error);
  });
  return ctx.request.body;
}
