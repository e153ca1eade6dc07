import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
import type { Context, Middleware } from 'koa';
import { appRouter, restProcedures } from '../../../routers/index.ts';
import { serviceErrorOf } from '../../../routers/trpc.ts';
import { ServiceError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { hasBody } from '../body.ts';
import type { ContextFactory } from '../context.ts';
import { reportFailure } from '../failures.ts';
import { readForm } from './multipart.ts';

const ENDPOINT = '/trpc';
const BODY_LIMIT = 100 * 1024;
/** A client sends the calls of one tick together; a request with more calls than this is not from our client. */
const LARGEST_BATCH = 10;
/** The constructor of Request refuses some other methods. */
const methods = new Set(['GET', 'HEAD', 'POST']);

/** The procedures for typed clients, under /trpc, with the same checks, limits, cookies and error codes as over REST. */
export function rpc(createContext: ContextFactory, log: Log): Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(`${ENDPOINT}/`) || !methods.has(ctx.method)) return next();
    ctx.state['route'] = isKnown(ctx.path) ? ctx.path : ENDPOINT;
    const response = await fetchRequestHandler({
      endpoint: ENDPOINT,
      router: appRouter,
      req: toRequest(ctx),
      maxBatchSize: LARGEST_BATCH,
      createContext: () => ({ ...createContext(ctx), setStatus: () => undefined }),
      onError: ({ error }) => reportFailure(ctx, serviceErrorOf(error), log),
    });
    ctx.status = response.status;
    for (const [name, value] of response.headers) {
      if (name === 'vary') ctx.vary(value);
      else ctx.set(name, value);
    }
    ctx.body = await response.text();
    ctx.type = 'json';
  };
}

/** Only names of our procedures go into the log: anything else may be an address or a token. */
const isKnown = (path: string): boolean =>
  path
    .slice(ENDPOINT.length + 1)
    .split(',')
    .every((name) => Object.hasOwn(appRouter._def.procedures, name));

/** The body is passed on as it arrives, and only if a procedure asks for it. */
function toRequest(ctx: Context): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(ctx.req.headers)) headers.set(name, String(value));
  // It would make tRPC stream its answers, all with status 200.
  headers.delete('trpc-accept');
  // The Host was checked before: only path and query still matter.
  const url = `http://localhost${ctx.path}${ctx.search}`;
  if (takesForm(ctx)) return new FormRequest(url, { method: ctx.method, headers }, () => readForm(ctx));
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return new Request(url, { method: ctx.method, headers });
  if (!hasBody(ctx.req)) {
    // tRPC asks for a content type all the same.
    headers.set('content-type', 'application/json');
    return new Request(url, { method: ctx.method, headers });
  }
  const body = ReadableStream.from(limited(ctx.req.iterator({ destroyOnReturn: false })));
  return new Request(url, { method: ctx.method, headers, body, duplex: 'half' });
}

/** A form is read with the limits that hold over REST, and only if its procedure asks for it. */
class FormRequest extends Request {
  override readonly formData: () => Promise<FormData>;

  constructor(url: string, init: RequestInit, read: () => Promise<FormData>) {
    super(url, init);
    this.formData = read;
  }
}

const formPaths = new Set(
  restProcedures.filter(({ openapi }) => openapi.contentTypes).map(({ name }) => `${ENDPOINT}/${name}`),
);

const takesForm = (ctx: Context) =>
  ctx.method === 'POST' && formPaths.has(ctx.path) && Boolean(ctx.is('multipart/form-data'));

async function* limited(chunks: AsyncIterable<Uint8Array>) {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.byteLength;
    if (size > BODY_LIMIT) throw new ServiceError('PAYLOAD_TOO_LARGE');
    yield chunk;
  }
}
