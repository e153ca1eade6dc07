import { TRPCError } from '@trpc/server';
import type { Context } from 'koa';
import { describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../../server/errors.ts';
import { answerFailures, toServiceError } from '../../../server/http/failures.ts';

/** The response and the log of a request whose handling throws, or does this. */
async function answerTo(handle: (ctx: Context) => unknown, state: object = {}) {
  const log = { error: vi.fn(), warn: vi.fn() };
  const headers: Record<string, string> = {};
  const set = (name: string, value: string) => {
    headers[name] = value;
  };
  const ctx = { status: 404, body: undefined, state: { id: 'request', ...state }, set } as unknown as Context;
  await answerFailures(log as never)(ctx, async () => handle(ctx));
  const { status, body } = ctx;
  return { status, body: body && JSON.parse(JSON.stringify(body)), headers, log, state: ctx.state };
}
const failing = (error: unknown, state?: object) =>
  answerTo(() => {
    throw error;
  }, state);

test('a request that nothing handled is NOT_FOUND; an answered one is left alone', async () => {
  expect(await answerTo(() => undefined)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  for (const [status, body] of [
    [404, 'own text'],
    [204, undefined],
  ] as const) {
    const answer = await answerTo((ctx) => Object.assign(ctx, { status, body: body && JSON.stringify(body) }));
    expect(answer).toMatchObject({ status, headers: {} });
  }
});

test('a failure has its status, its body and no cache', async () => {
  const details = { email: { message: 'm', rule: 'r' } };
  const { status, body, headers, log } = await failing(
    new ServiceError('VALIDATION_FAILED', { details, message: 'no' }),
  );
  expect([status, body, headers]).toEqual([
    400,
    { message: 'no', code: 'VALIDATION_FAILED', details },
    { 'Cache-Control': 'no-store' },
  ]);
  expect([log.warn, log.error].flatMap(({ mock }) => mock.calls)).toEqual([]);
});

test('a failure has the headers of its kind', async () => {
  const limited = { points: 5, seconds: 60, variable: 'LIMIT_LOGIN' as const };
  const { headers, state } = await failing(new ServiceError('RATE_LIMITED', { retryAfter: 7, limit: limited }));
  expect(headers).toEqual({
    'Cache-Control': 'no-store',
    'Retry-After': '7',
    'RateLimit-Limit': '5',
    'RateLimit-Remaining': '0',
    'RateLimit-Reset': '7',
  });
  expect(state).toMatchObject({ limit: 'LIMIT_LOGIN' });
  expect((await failing(new ServiceError('UNAUTHENTICATED', { challenge: 'Bearer x' }))).headers).toEqual({
    'Cache-Control': 'no-store',
    'WWW-Authenticate': 'Bearer x',
  });
});

describe('the log', () => {
  test('has an unexpected error whole', async () => {
    const err = new Error('unexpected');
    const { log, body } = await failing(err);
    expect(log.error).toHaveBeenCalledExactlyOnceWith({ id: 'request', err }, body.message);
    expect(log.warn).not.toHaveBeenCalled();
  });

  test('has an outage in one line, with its cause if it has one', async () => {
    const down = await failing(new ServiceError('SERVICE_UNAVAILABLE', { cause: new Error('down') }));
    expect(down.log.warn).toHaveBeenCalledExactlyOnceWith(
      { id: 'request', cause: expect.stringContaining('down') },
      down.body.message,
    );
    const { log, body } = await failing(new ServiceError('SERVICE_UNAVAILABLE'));
    expect(log.warn).toHaveBeenCalledExactlyOnceWith(
      { id: 'request', cause: expect.stringContaining(body.message) },
      body.message,
    );
    expect(log.error).not.toHaveBeenCalled();
  });
});

describe('with `error` in the body', () => {
  const details = { a: { message: 'first', rule: 'r' }, b: { message: 'second', rule: 'r' } };
  const invalid = new ServiceError('VALIDATION_FAILED', { message: 'invalid', details });

  test('it is the first problem: alone in a 400, or beside the code', async () => {
    expect((await failing(invalid, { errorField: 'only' })).body).toEqual({ error: 'first' });
    expect((await failing(invalid, { errorField: 'beside' })).body).toEqual({
      error: 'first',
      message: 'invalid',
      code: 'VALIDATION_FAILED',
      details,
    });
  });

  test('it is the message without a problem of a field', async () => {
    const { status, body } = await failing(new ServiceError('NOT_FOUND'), { errorField: 'only' });
    expect([status, body]).toEqual([404, { code: 'NOT_FOUND', message: body.message, error: body.message }]);
  });

  test.each(['UNAUTHENTICATED', 'INSUFFICIENT_SCOPE', 'FORBIDDEN', 'ORIGIN_MISMATCH'] as const)(
    'a caller without access gets the ordinary body: %s',
    async (code) => {
      expect((await failing(new ServiceError(code), { errorField: 'only' })).body).toEqual({
        code,
        message: expect.any(String),
      });
    },
  );
});

test.each<[string, unknown, string]>([
  ['400', Object.assign(new Error(), { status: 400 }), 'VALIDATION_FAILED'],
  ['404', Object.assign(new Error(), { status: 404 }), 'NOT_FOUND'],
  ['408', Object.assign(new Error(), { status: 408 }), 'REQUEST_TIMEOUT'],
  ['413', Object.assign(new Error(), { status: 413 }), 'PAYLOAD_TOO_LARGE'],
  ['415', Object.assign(new Error(), { status: 415 }), 'UNSUPPORTED_MEDIA_TYPE'],
  ['no known status', Object.assign(new Error(), { status: 418 }), 'INTERNAL'],
  ['no status', new Error(), 'INTERNAL'],
  ['a status, but no error', { status: 400 }, 'INTERNAL'],
  ['tRPC', new TRPCError({ code: 'NOT_FOUND' }), 'NOT_FOUND'],
])('an error with %s is %s', (_, thrown, code) => {
  expect(toServiceError(thrown)).toMatchObject({ code });
});

test('the cause of an unknown error is kept; ours is as it was thrown', () => {
  const cause = new Error('unknown');
  expect(toServiceError(cause).cause).toBe(cause);
  const own = new ServiceError('EMAIL_TAKEN');
  expect(toServiceError(own)).toBe(own);
});
