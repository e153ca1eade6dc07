import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { procedures } from '../../../routers/procedures.ts';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { isMutationRun } from '../../rig/mutation-run.ts';
import { outsideMutationRun } from '../../rig/outside-mutation-run.ts';
import { type Call, callerOf } from '../rig/callers.ts';
import { createKey, withKey } from '../rig/key-scenario.ts';
import { administrator, isAlive, loggedIn, logIn, onBothStacks, registered, verified } from '../rig/scenario.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const tokens = { old: 'billing-token-of-last-year', current: 'billing-token-of-this-year', shop: 'shop-token' };
const SERVICE_TOKENS = [
  `billing:${sha256(tokens.old)}`,
  `billing:${sha256(tokens.current).toUpperCase()}`,
  `shop:${sha256(tokens.shop)}`,
].join(',');

const UNKNOWN_USER = 'user_00000000-0000-7000-8000-000000000000';

onBothStacks(
  (stack) => {
    const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
    const call: Call = (...args) => scenario().call(...args);

    /** The output, or the error code. */
    const asService = async (token: string, procedure: string, input: unknown) => {
      const { createServiceClient, isServiceError } = await loadClient();
      const { query, mutate } = procedureOf(createServiceClient({ url: stack().url, token }), procedure);
      const send = procedure === 'service.users' ? query : mutate;
      return send(input).catch((error: unknown) => {
        if (isServiceError(error)) return error.code;
        throw error;
      });
    };

    test('a valid session returns its user, with the fields of a profile', async () => {
      const { session, id } = await loggedIn(scenario());
      const { data } = await call('profile.get', undefined, { session });
      const before = Math.floor(Date.now() / 1000);
      expect(await asService(tokens.current, 'service.session', { token: session })).toEqual({
        user: data.user,
        session: { createdAt: expect.any(Number), expiresAt: expect.any(Number) },
        fresh: false,
      });
      const answer = await asService(tokens.current, 'service.session', { token: session });
      const { createdAt, expiresAt } = (answer as { session: Record<string, number> }).session as never;
      expect(data.user.id).toBe(id);
      expect(Math.abs(before - createdAt)).toBeLessThan(60);
      expect(expiresAt - createdAt).toBe(7 * 24 * 60 * 60);
    });

    test('a valid access key returns its user and its scopes; a revoked one returns null', async () => {
      const { session, key, secret } = await withKey(scenario(), { scopes: ['uploads:read'] });
      const { data } = await call('profile.get', undefined, { session });
      expect(await asService(tokens.current, 'service.session', { token: secret })).toEqual({
        user: data.user,
        session: { createdAt: key.createdAt, expiresAt: 253_402_300_799 },
        fresh: false,
        scopes: ['uploads:read'],
        credential: { kind: 'key', id: key.id },
      });
      const { secret: expiring, key: second } = await createKey(scenario(), session, { expiresInDays: 1 });
      expect(await asService(tokens.current, 'service.session', { token: expiring })).toMatchObject({
        session: { expiresAt: second.expiresAt },
      });
      await call('keys.revoke', { id: key.id }, { session });
      for (const token of [secret, `${secret}x`, 'acct_'])
        expect(await asService(tokens.current, 'service.session', { token })).toBeNull();
    });

    test('an invalid session returns null', async () => {
      const { session } = await loggedIn(scenario());
      await call('auth.logout', undefined, { session });
      for (const token of [session, '', 'x', 'x'.repeat(43), 'x'.repeat(50_000), `${session}\n`]) {
        expect(await asService(tokens.current, 'service.session', { token })).toBeNull();
      }
      for (const token of [undefined, null, 1, [session]]) {
        expect(await asService(tokens.current, 'service.session', { token })).toBe('VALIDATION_FAILED');
      }
    });

    test('users are returned in the requested order, each once, without unknown ones', async () => {
      const [first, second] = [await verified(scenario()), await registered(scenario())];
      const ids = [second.id, UNKNOWN_USER, first.id, 'nonsense', "user_1'--", second.id];
      const { users } = (await asService(tokens.shop, 'service.users', { ids })) as { users: object[] };
      expect(users).toEqual([
        expect.objectContaining({ id: second.id, email: second.email, emailVerified: false }),
        expect.objectContaining({ id: first.id, email: first.email, emailVerified: true }),
      ]);
      expect(users.every((user) => !('passwordHash' in user) && !('role' in user))).toBe(true);
      expect(await asService(tokens.shop, 'service.users', { ids: [] })).toEqual({ users: [] });
    });

    test('at most a hundred users can be read at once', async () => {
      const { id } = await verified(scenario());
      const ids = [...Array.from({ length: 99 }, (_, i) => UNKNOWN_USER.replace(/0{3}$/, `${100 + i}`)), id];
      expect(await asService(tokens.shop, 'service.users', { ids })).toMatchObject({ users: [{ id }] });
      expect(await asService(tokens.shop, 'service.users', { ids: [...ids, id] })).toBe('VALIDATION_FAILED');
    });

    test('a service can end all sessions of one user', async () => {
      const { session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      const stranger = await loggedIn(scenario());
      const ended = await asService(tokens.shop, 'service.endSessions', { userId: person.id });
      expect(ended).toEqual({ success: true, message: expect.any(String) });
      for (const gone of [session, other]) expect(await isAlive(call, gone)).toBe(false);
      expect(await isAlive(call, stranger.session)).toBe(true);
      for (const userId of [UNKNOWN_USER, 'nonsense']) {
        expect(await asService(tokens.shop, 'service.endSessions', { userId })).toBe('NOT_FOUND');
      }
    });

    test('without a service token every call is refused, with or without a session cookie', async () => {
      const admin = await administrator(scenario());
      const inputs: Record<string, unknown> = {
        'service.session': { token: admin.session },
        'service.users': { ids: [admin.id] },
        'service.endSessions': { userId: admin.id },
      };
      const calls = procedures.filter(({ name }) => name.startsWith('service.'));
      expect(calls.map(({ name }) => name)).toEqual(
        expect.arrayContaining([...Object.keys(inputs), 'service.setFields']),
      );
      const refused = [
        {},
        { cookie: `auth_session=${admin.session}` },
        { authorization: `Bearer ${admin.session}` },
        { authorization: `Bearer ${sha256(tokens.shop)}` },
        { authorization: `Basic ${tokens.shop}` },
        { authorization: tokens.shop },
        { authorization: 'Bearer' },
        { authorization: `Bearer ${tokens.shop} ${tokens.shop}` },
        { authorization: `Bearer ${tokens.shop}x`, cookie: `auth_session=${admin.session}` },
        { cookie: `authorization=Bearer ${tokens.shop}` },
      ];
      for (const { name, type } of calls) {
        const method = type === 'query' ? 'GET' : 'POST';
        // Without an input too: it is not looked at before the token.
        const input = inputs[name] ?? {};
        const query = method === 'GET' ? `?input=${encodeURIComponent(JSON.stringify(input))}` : '';
        for (const headers of refused) {
          const response = await fetch(`${stack().url}/trpc/${name}${query}`, {
            method,
            headers: { 'content-type': 'application/json', ...headers },
            ...(method === 'POST' && { body: JSON.stringify(input) }),
          });
          expect(response.status, `${name} ${JSON.stringify(headers)}`).toBe(401);
          expect(await response.json()).toMatchObject({ error: { data: { code: 'UNAUTHENTICATED' } } });
        }
      }
      expect(await isAlive(call, admin.session)).toBe(true);
    });

    test('a service token is not a session and sets no cookie', async () => {
      const { session } = await loggedIn(scenario());
      const authorization = `Bearer ${tokens.shop}`;
      expect((await call('profile.get', undefined, { headers: { authorization } })).status).toBe(401);
      const response = await fetch(`${stack().url}/trpc/service.session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization },
        body: JSON.stringify({ token: session }),
      });
      expect(response.status).toBe(200);
      expect(response.headers.getSetCookie()).toEqual([]);
    });

    test('service calls take no token in a URL and have no REST path', async () => {
      const { session } = await loggedIn(scenario());
      const headers = { authorization: `Bearer ${tokens.shop}` };
      const input = encodeURIComponent(JSON.stringify({ token: session }));
      for (const path of [`/trpc/service.session?input=${input}`, '/service/session', '/api/service/users']) {
        expect((await fetch(stack().url + path, { headers })).status).toBe(404);
      }
    });

    test('the old and the new token both work, and the log names the service without any token', async () => {
      for (const token of [tokens.old, tokens.current, tokens.shop]) {
        expect(await asService(token, 'service.users', { ids: [] })).toEqual({ users: [] });
      }
      const output = () => stack().services[0]?.output() ?? '';
      await expect.poll(output).toMatch(/"?service"?: ?"shop"/);
      expect(output()).toMatch(/"?service"?: ?"billing"/);
      for (const token of Object.values(tokens)) expect(output()).not.toContain(token);
    });
  },
  { env: { SERVICE_TOKENS } },
);

test('npm run service-token prints a token and the setting that accepts it', async () => {
  if (isMutationRun) outsideMutationRun('npm');
  const make = (...args: string[]) => promisify(execFile)('npm', ['run', '--silent', 'service-token', '--', ...args]);
  const { stdout } = await make('billing');
  const [, token = ''] = /^ {2}([\w-]{43})$/m.exec(stdout) ?? [];
  expect(stdout).toContain(`SERVICE_TOKENS=billing:${sha256(token)}`);
  expect((await make('billing')).stdout).not.toContain(token);
  for (const args of [[], ['bill ing'], ['a,b'], ['a:b'], ['x'.repeat(65)]]) {
    await expect(make(...args)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('Usage') });
  }
});
