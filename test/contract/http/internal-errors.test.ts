import { expect, test } from 'vitest';
import { clientAddress } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import { onBothStacks } from '../rig/scenario.ts';

onBothStacks((stack) => {
  // checks: 65
  test('an internal error hides its cause; the log has it with the request id', async () => {
    const ask = async (path: string) => {
      const response = await fetch(stack().url + path, { headers: { 'x-forwarded-for': clientAddress() } });
      return { status: response.status, id: response.headers.get('x-request-id') ?? '', body: await response.json() };
    };
    await stack().database('alter table users rename column avatar to former_avatar');
    try {
      const message = 'Something went wrong on our side';
      const rest = await ask('/api/users');
      expect(rest).toMatchObject({ status: 500, body: {} });
      expect(rest.body).toEqual({ message, code: 'INTERNAL' });
      const rpc = await ask('/trpc/users.list?input={}');
      expect(rpc.status).toBe(500);
      const data = { code: 'INTERNAL', httpStatus: 500, path: 'users.list' };
      expect(rpc.body).toEqual({ error: { message, code: -32603, data } });
      for (const { id } of [rest, rpc]) {
        const logged = () => stack().services[0]?.output().split(id).length ?? 0;
        // The request's log line, and the error with its stack.
        await until(() => logged() >= 3, { what: 'the error in the log' });
      }
      expect(stack().services[0]?.output()).toMatch(/avatar[\s\S]*\n\s+at /);
    } finally {
      await stack().database('alter table users rename column former_avatar to avatar');
    }
    expect((await ask('/api/users')).status).toBe(200);
  });
});
