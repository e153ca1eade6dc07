import Koa from 'koa';
import { expect, test, vi } from 'vitest';
import { ServiceError } from '../../../server/errors.ts';
import { answerFailures } from '../../../server/http/failures.ts';
import { limitWarning } from '../../../server/http/limit-warning.ts';
import { exceeded } from '../../../server/limits/index.ts';

const log = { warn: vi.fn(), error: vi.fn() };
let now = 0;
const app = new Koa()
  .use(limitWarning(log as never, () => now))
  .use(answerFailures(log as never))
  .use(async ({ path }) => {
    if (path === '/closed') throw new ServiceError('RATE_LIMITED');
    const rate = { points: 5, seconds: 900 };
    throw exceeded(path === '/register' ? 'register' : 'idpStart', { rate, times: 1, msBeforeNext: 1000 });
  });

test('a limit that refuses is named once an hour, each on its own', async () => {
  const server = app.listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const ask = async (path: string) => expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(429);
    const named = () => log.warn.mock.calls.map(([{ limit }]) => limit);
    for (const path of ['/register', '/register', '/start', '/closed', '/start']) await ask(path);
    expect(named()).toEqual(['LIMIT_REGISTER', 'LIMIT_IDP_START']);
    now = 3_600_000;
    await ask('/register');
    expect(named()).toEqual(['LIMIT_REGISTER', 'LIMIT_IDP_START', 'LIMIT_REGISTER']);
  } finally {
    server.close();
  }
});
