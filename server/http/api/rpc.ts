/*
 * tRPC's own HTTP adapter is not used: it makes a Request, a Response and their headers for each call, three times the
 * CPU of the call (docs/performance.md).
 */

import { getTRPCErrorFromUnknown, type TRPCProcedureType } from '@trpc/server';
import { getHTTPStatusCode } from '@trpc/server/http';
import type { Context, Middleware } from 'koa';
import { errorShapeOf, isProcedure, restProcedures } from '../../../routers/procedures.ts';
import { serviceErrorOf } from '../../../routers/trpc.ts';
import { ServiceError } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { ContextFactory } from '../context.ts';
import { reportFailure } from '../failures.ts';
import { callProcedure } from './call.ts';
import { decode } from './decode.ts';
import { readJson } from './json-body.ts';
import { collected } from './json-pages.ts';
import { readForm } from './multipart.ts';

const ENDPOINT = '/trpc';
/** The typed client batches the calls of one tick. A request with more calls is not from it. */
const MAX_BATCH = 10;
const typeOf: Record<string, TRPCProcedureType> = { GET: 'query', POST: 'mutation' };

/**
 * Serves the procedures for typed clients under /trpc over tRPC's HTTP protocol (https://trpc.io/docs/rpc), without
 * streams. Checks, limits, cookies and error codes are those of REST.
 */
export function rpc(createContext: ContextFactory, log: Log): Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(`${ENDPOINT}/`)) return next();
    if (ctx.method === 'HEAD') {
      ctx.status = 204;
      return;
    }
    const type = typeOf[ctx.method];
    if (!type) return next();

    const fail = (thrown: unknown, path: string) => {
      const error = getTRPCErrorFromUnknown(thrown);
      reportFailure(ctx, serviceErrorOf(error), log);
      return { error: errorShapeOf(error, { path, type }) };
    };
    const call = async (path: string, batchIndex: number, getRawInput: () => Promise<unknown>) => {
      try {
        const output = await callProcedure({ path, type, ctx: createContext(ctx), batchIndex, getRawInput });
        return { result: { data: attachments.has(path) ? await collected(output as object) : output } };
      } catch (thrown) {
        return fail(thrown, path);
      }
    };
    const answerAll = async () => {
      const query = new URLSearchParams(ctx.querystring);
      const isBatch = query.get('batch') === '1';
      const names = namesIn(ctx.path, isBatch);
      // Only names of known procedures are logged: other text may be an address or a token.
      if (names.every(isProcedure)) ctx.state['route'] = `${ENDPOINT}/${names.join(',')}`;
      const inputOf = inputReader(ctx, { type, names, isBatch, inQuery: query.get('input') });
      const answers = await Promise.all(names.map((name, i) => call(name, i, () => inputOf(i))));
      return isBatch ? answers : (answers[0] as (typeof answers)[number]);
    };

    ctx.state['route'] = ENDPOINT;
    const answer = await answerAll().catch((refused: unknown) => fail(refused, ''));
    ctx.status = getHTTPStatusCode(answer);
    ctx.body = answer;
  };
}

/** The procedure names in a path: one, or a batch separated by commas. */
function namesIn(path: string, isBatch: boolean): string[] {
  const text = decode(path.slice(ENDPOINT.length + 1));
  const names = isBatch ? text.split(',') : [text];
  if (names.length > MAX_BATCH) {
    throw new ServiceError('VALIDATION_FAILED', { message: `A batch has at most ${MAX_BATCH} calls` });
  }
  return names;
}

const formProcedures = new Set(restProcedures.filter(({ openapi }) => openapi.contentTypes).map(({ name }) => name));

/** The procedures with rows in their output, which must be collected. */
const attachments = new Set(restProcedures.filter(({ openapi }) => openapi.attachment).map(({ name }) => name));

interface Calls {
  type: TRPCProcedureType;
  names: string[];
  isBatch: boolean;
  /** The query parameter `input`, for reads. */
  inQuery: string | null;
}

/** Returns the input of each call by its index. The body is read once, when the first procedure asks for it. */
function inputReader(ctx: Context, { type, names, isBatch, inQuery }: Calls): (index: number) => Promise<unknown> {
  const isForm = !isBatch && formProcedures.has(names[0] ?? '');
  const read = async (): Promise<unknown> => {
    if (type === 'query') return inQuery === null ? undefined : parseJson(inQuery);
    return isForm ? readForm(ctx) : readJson(ctx);
  };
  let input: Promise<unknown> | undefined;
  return async (index) => {
    input ??= read();
    return isBatch ? ((await input) as Record<number, unknown> | undefined)?.[index] : input;
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ServiceError('VALIDATION_FAILED', { cause: error });
  }
}
