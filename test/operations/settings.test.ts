import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { logIn, onBothStacks, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { startService } from '../rig/process/service.ts';
import { clientAddress } from '../rig/servers/address.ts';

describe('a hash with more iterations than configured', () => {
  onBothStacks(
    (stack) => {
      test('is kept at a login', async () => {
        const call = callerOf('rest', stack().url);
        const person = await verified({ stack: stack(), call });
        const salt = randomBytes(16);
        const hash = pbkdf2Sync(PASSWORD, salt, 30_000, 32, 'sha256');
        const costly = `30000:${salt.toString('base64')}:${hash.toString('base64')}`;
        await stack().database('update users set password_hash = ? where id = ?', [costly, person.id]);
        await logIn(call, person);
        const [row] = await stack().database('select password_hash as hash from users where id = ?', [person.id]);
        expect(row?.['hash']).toBe(costly);
      });
    },
    { env: { PASSWORD_ITERATIONS: '20000' } },
  );
});

const WARNING = /received X-Forwarded-For while TRUST_PROXY is 0/g;

test.each([
  ['0', 1],
  ['1', 0],
])('with TRUST_PROXY=%s a process warns about X-Forwarded-For %i times', async (TRUST_PROXY, times) => {
  const service = await startService({ env: { TRUST_PROXY } });
  const ask = () => fetch(`${service.url}/api/health`, { headers: { 'x-forwarded-for': clientAddress() } });
  await fetch(`${service.url}/api/health`);
  await Promise.all([ask(), ask(), ask()]);
  await service.stop();
  expect(service.output().match(WARNING) ?? []).toHaveLength(times);
});

test('the log names the variable of a limit that refuses logins, whichever surface they use', async () => {
  for (const surface of ['rest', 'trpc'] as const) {
    const service = await startService({ env: { LIMIT_LOGIN: '1/900' } });
    const logIn = () =>
      callerOf(surface, service.url)(
        'auth.login',
        { email: 'nobody@example.test', password: PASSWORD },
        { address: '192.0.2.1' },
      );
    for (const status of [401, 429, 429]) expect((await logIn()).status).toBe(status);
    await service.stop();
    expect(service.output().match(/answered 429: LIMIT_LOGIN is used up/g) ?? []).toHaveLength(1);
  }
});
