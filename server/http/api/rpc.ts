import { getTRPCErrorFromUnknown, getTRPCErrorShape, type TRPCProcedureType } from '@trpc/server';
import { getHTTPStatusCode } from '@trpc/server/http';
import type { Context, Middleware } from 'koa';
import { appRouter, restProcedures } from '../../../routers/index.ts';
import { serviceErrorOf } from '../../../routers/trpc.ts';
import { ServiceError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { ContextFactory } from '../context.ts';
import { reportFailure } from '../failures.ts';
import { callProcedure } from './call.ts';
import { decode } from './decode.ts';
import { readJson } from './json-body.ts';
import { collected } from './json-pages.ts';
import { readForm } from './multipart.ts';

const ENDPOINT = '/trpc';
/** A client sends the calls of one tick together; a request with more calls than this is not from our client. */
const LARGEST_BATCH = 10;
/** A read is a GET; everything else is a POST. */
const typeOf: Record<string, TRPCProcedureType> = { GET: 'query', POST: 'mutation' };

/**
 * The procedures for typed clients, under /trpc, with the same checks, limits, cookies and error codes as over REST: tRPC's
 * HTTP protocol (https://trpc.io/docs/rpc), without its streams. tRPC's own adapter makes a Request, a Response and their
 * headers for each call, which takes as long as all the rest of a profile read.
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
      const config = appRouter._def._config;
      return { error: getTRPCErrorShape({ config, error, type, path, input: undefined, ctx: undefined }) };
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
      // Only names of our procedures go into the log: anything else may be an address or a token.
      if (names.every(isKnown)) ctx.state['route'] = `${ENDPOINT}/${names.join(',')}`;
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

/** The names of the procedures that a path calls: one, or those of a batch with commas between them. */
function namesIn(path: string, isBatch: boolean): string[] {
  const text = decode(path.slice(ENDPOINT.length + 1));
  const names = isBatch ? text.split(',') : [text];
  if (names.length > LARGEST_BATCH) {
    throw new ServiceError('VALIDATION_FAILED', { message: `A batch has at most ${LARGEST_BATCH} calls` });
  }
  return names;
}

const isKnown = (name: string): boolean => Object.hasOwn(appRouter._def.procedures, name);

const formProcedures = new Set(restProcedures.filter(({ openapi }) => openapi.contentTypes).map(({ name }) => name));

/** The procedures whose output has rows that are to be read. */
const attachments = new Set(restProcedures.filter(({ openapi }) => openapi.attachment).map(({ name }) => name));

interface Calls {
  type: TRPCProcedureType;
  names: string[];
  isBatch: boolean;
  /** The parameter `input`, for reads. */
  inQuery: string | null;
}

/**
 * Answers the input of each call, that of a batch by its index. It is read once, when the first procedure asks for it, so
 * that one may refuse before a byte of the body is received.
 */
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
