import { expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { callerOf } from '../rig/callers.ts';
import { loggedIn, onBothStacks } from '../rig/scenario.ts';

/** What a shell shows: the next prompt is on a line of its own. */
onBothStacks((stack) => {
  test('JSON ends with a newline, an error and a stream too, with its length', async () => {
    const { session } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
    const headers = { accept: '*/*', cookie: `auth_session=${session}` };
    for (const path of [
      '/api/health',
      '/api/users',
      '/api/profile',
      '/api/account/export',
      '/openapi.json',
      '/nowhere',
      '/auth/idp?returnTo=//evil.test',
      '/trpc/health',
      '/readyz',
    ]) {
      const answer = await ask(stack().url + path, { headers });
      expect([path, answer.headers['content-type']]).toEqual([path, 'application/json; charset=utf-8']);
      expect([path, answer.body.slice(-2)]).toEqual([path, '}\n']);
      expect(() => JSON.parse(answer.body)).not.toThrow();
      const length = answer.headers['content-length'];
      if (length !== undefined) expect(Number(length)).toBe(Buffer.byteLength(answer.body));
    }
    const malformed = await ask(`${stack().url}/api/health`, { headers: { 'x-big': 'x'.repeat(100_000) } });
    expect([malformed.status, malformed.body.at(-1)]).toEqual([431, '\n']);
  });
});
