import { describe, expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { expectRefusal, onBothStacks } from '../rig/scenario.ts';

onBothStacks((stack) => {
  const preflight = (origin: string, path = '/trpc/auth.login') =>
    fetch(stack().url + path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
    });
  const warnings = (origin: string) =>
    stack()
      .services.flatMap((service) => service.output().split('\n'))
      .filter((line) => line.includes('ALLOWED_ORIGINS') && line.includes(origin));

  describe('a front end that is not allowed', () => {
    // checks: 67
    test.each([
      'https://shop.example.test',
      'http://shop.example.test:8080',
      'http://[2001:db8::1]:81',
      'capacitor://app',
    ])('a preflight of %s is refused with the reason', async (origin) => {
      for (const path of ['/trpc/auth.login', '/auth/login', '/api/profile', '/nowhere']) {
        const answer = await preflight(origin, path);
        expect([answer.status, await answer.json()]).toEqual([
          403,
          {
            message: `Requests from ${origin} are not accepted: it is not named in the ALLOWED_ORIGINS of the service`,
            code: 'ORIGIN_MISMATCH',
          },
        ]);
        expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      }
    });

    test.each(['null', 'https://<script>', 'https://a b', 'x', `https://${'x'.repeat(300)}.test`, 'https://a/\u00e9'])(
      'an origin that no browser sends is refused without its name: %j',
      async (origin) => {
        const answer = await preflight(origin);
        expect([answer.status, await answer.json()]).toEqual([
          403,
          { message: 'Requests from this origin are not accepted', code: 'ORIGIN_MISMATCH' },
        ]);
      },
    );

    test('is logged once', async () => {
      const origin = 'https://logged.example.test';
      await fetch(`${stack().url}/api/users`, { headers: { origin } });
      for (let i = 0; i < 5; i++) await preflight(origin);
      const reply = await callerOf('rest', stack().url)('auth.logout', undefined, { headers: { origin } });
      expectRefusal(reply, 403, 'ORIGIN_MISMATCH', 'Requests from this origin are not accepted');
      await expect.poll(() => warnings(origin)).toHaveLength(1);
    });

    test('does not learn which origins are allowed', async () => {
      const { origin } = new URL(stack().appUrl);
      expect((await preflight(origin)).status).toBe(204);
      expect((await preflight('http://localhost:5173')).status).toBe(204);
      expect([...warnings(origin), ...warnings('http://localhost:5173')]).toEqual([]);
    });
  });
});
