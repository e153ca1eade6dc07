import { afterAll, describe, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { identityClaims, loginsThrough } from '../../provider/login.ts';
import { entriesOf, replaceEntry, restoreEntries, sessionEntry } from '../../rig/observe/key-value-view.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import type { Call } from '../rig/callers.ts';
import {
  administrator,
  everywhere,
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';

/** What users see of their sessions, and how they end one. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const HOUR = 3600;
const CLEARED = 'auth_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0';

interface Listed {
  id: string;
  createdAt: number;
  lastUsedAt: number;
  address: string;
  device: string;
  method: string;
  current: boolean;
}

const listOf = async (call: Call, session: string): Promise<Listed[]> => {
  const { status, data } = await call('sessions.list', undefined, { session });
  expect(status).toBe(200);
  return data.data;
};

const idOf = async (call: Call, session: string): Promise<string> =>
  (await listOf(call, session)).find(({ current }) => current)?.id ?? '';

const rowsOf = ({ database }: Stack, userId: string) =>
  database<{ id: string }>('select id from sessions where user_id = ?', [userId]);

everywhere(
  (scenario) => {
    test('sessions are listed with their details, newest first', async () => {
      const { call } = scenario();
      const { session: first, ...person } = await loggedIn(scenario());
      const address = clientAddress();
      const second = await logIn(call, person, { address, headers: { 'user-agent': FIREFOX } });
      const now = Math.floor(Date.now() / 1000);
      const [newest, oldest, ...more] = await listOf(call, second);
      expect(more).toEqual([]);
      expect(newest).toEqual({
        id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
        createdAt: expect.any(Number),
        lastUsedAt: expect.any(Number),
        address,
        device: 'Firefox on Linux',
        method: 'password',
        current: true,
      });
      expect(Math.abs(now - (newest?.createdAt ?? 0))).toBeLessThan(60);
      expect((newest?.lastUsedAt ?? 1) % HOUR).toBe(0);
      expect(now - (newest?.lastUsedAt ?? 0)).toBeLessThan(HOUR + 10);
      expect(oldest).toMatchObject({ current: false, method: 'password' });
      expect((await listOf(call, first)).map(({ id, current }) => [id, current])).toEqual([
        [newest?.id, false],
        [oldest?.id, true],
      ]);
    });

    test('a login through a provider is listed with its name', async () => {
      const { call, stack } = scenario();
      const { session = '' } = await logInThrough(stack, identityClaims());
      expect(await listOf(call, session)).toMatchObject([{ method: 'acme', current: true }]);
    });

    // checks: 21
    test('a session can be ended from another, alone', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const lost = await logIn(call, person);
      const current = await logIn(call, person);
      const id = await idOf(call, lost);
      const reply = await call('sessions.end', { id }, { session });
      expect(reply).toMatchObject({
        status: 200,
        data: { success: true, message: expect.any(String) },
        setCookies: [],
      });
      expect(await Promise.all([lost, session, current].map((one) => isAlive(call, one)))).toEqual([false, true, true]);
      expect((await listOf(call, session)).map((one) => one.id)).not.toContain(id);
      expectRefusal(await call('sessions.end', { id }, { session }), 404, 'NOT_FOUND', 'Session not found');
      expect(await rowsOf(stack, person.id)).toHaveLength(2);
    });

    test('the store keeps nothing of an ended session', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const [lost, other] = [await logIn(call, person), await logIn(call, person)];
      const stored = async () => (await entriesOf(stack, 'session:*')).filter(({ value }) => value.includes(person.id));
      expect(await stored()).toHaveLength(3);
      await call('sessions.end', { id: await idOf(call, lost) }, { session });
      expect(await stored()).toHaveLength(2);
      await call('auth.logoutAll', undefined, { session: other });
      expect(await stored()).toEqual([]);
    });

    test('ending the current session works like a logout', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const reply = await call('sessions.end', { id: await idOf(call, session) }, { session });
      expect(reply).toMatchObject({ status: 200, setCookies: [CLEARED] });
      expectRefusal(await call('sessions.list', undefined, { session }), 401, 'UNAUTHENTICATED');
    });

    test('nobody can end the session of another user', async () => {
      const { call } = scenario();
      const { session, id: userId } = await loggedIn(scenario());
      const stranger = await loggedIn(scenario());
      const valid = await idOf(call, stranger.session);
      const odd = [valid.toUpperCase(), ` ${valid}`, `${valid}\0`, userId, session, 'x'.repeat(2000), 'é', '%', "'"];
      for (const id of [valid, ...odd, '00000000-0000-0000-0000-000000000000']) {
        expectRefusal(await call('sessions.end', { id, userId: stranger.id }, { session }), 404, 'NOT_FOUND');
      }
      expect(await isAlive(call, stranger.session)).toBe(true);
      expect(await isAlive(call, session)).toBe(true);
    });

    test('requests without a session or from another site are refused', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const id = await idOf(call, session);
      for (const one of [undefined, 'A'.repeat(43)]) {
        expectRefusal(await call('sessions.list', undefined, { session: one }), 401, 'UNAUTHENTICATED');
        expectRefusal(await call('sessions.end', { id }, { session: one }), 401, 'UNAUTHENTICATED');
      }
      const headers = { origin: 'https://evil.test' };
      expectRefusal(await call('sessions.end', { id }, { session, headers }), 403, 'ORIGIN_MISMATCH');
      expect(await isAlive(call, session)).toBe(true);
    });

    describe('every end of sessions removes them from the list:', () => {
      const open = async () => {
        const person = await loggedIn(scenario());
        return { ...person, other: await logIn(scenario().call, person) };
      };
      const newPassword = 'Difference-Engine-1822';

      test('a logout removes its own', async () => {
        const { call, stack } = scenario();
        const { session, other, id } = await open();
        await call('auth.logout', undefined, { session });
        expect(await listOf(call, other)).toMatchObject([{ current: true }]);
        expect(await rowsOf(stack, id)).toHaveLength(1);
      });

      test('a login removes the one that the request carried', async () => {
        const { call, stack } = scenario();
        const { session, other, ...person } = await open();
        const third = await logIn(call, person, { session: other });
        expect((await listOf(call, third)).map(({ current }) => current)).toEqual([true, false]);
        expect(await isAlive(call, session)).toBe(true);
        expect(await rowsOf(stack, person.id)).toHaveLength(2);
      });

      test('a logout everywhere, a reset and an administrator remove all', async () => {
        const { call, stack } = scenario();
        const ways = [
          ({ session }: { session: string }) => call('auth.logoutAll', undefined, { session }),
          async ({ email }: { email: string }) => {
            await call('auth.forgotPassword', { email });
            const token = await mailedToken(stack, email, 'reset-password');
            return call('auth.resetPassword', { token, email, password: newPassword });
          },
          async ({ id }: { id: string }) => {
            const admin = await administrator(scenario());
            return call('users.endSessions', { id }, { session: admin.session });
          },
        ];
        for (const [i, end] of ways.entries()) {
          const person = await open();
          expect((await end(person)).status).toBe(200);
          expect(await rowsOf(stack, person.id)).toEqual([]);
          const session = await logIn(call, i === 1 ? { ...person, password: newPassword } : person);
          expect(await listOf(call, session)).toMatchObject([{ current: true }]);
        }
      });
    });

    // checks: 21
    test('ended sessions stay ended when the store is restored from a snapshot', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const [one, left, kept] = [await logIn(call, person), await logIn(call, person), await logIn(call, person)];
      const everywhere = await loggedIn(scenario());
      const all = [session, one, left, everywhere.session, kept];
      const snapshot = await Promise.all(all.map((each) => sessionEntry(stack, each)));
      await call('sessions.end', { id: await idOf(call, one) }, { session });
      await call('sessions.end', { id: await idOf(call, session) }, { session });
      await call('auth.logout', undefined, { session: left });
      await call('auth.logoutAll', undefined, { session: everywhere.session });
      await restoreEntries(stack, snapshot);
      expect(await Promise.all(all.map((each) => isAlive(call, each)))).toEqual([false, false, false, false, true]);
    });

    test('the hour of the last use is recorded, after the answer', async () => {
      const { call, stack } = scenario();
      const { session } = await loggedIn(scenario());
      const [{ id, lastUsedAt } = { id: '', lastUsedAt: 0 }] = await listOf(call, session);
      const stored = () =>
        stack.database<{ last_used_at: number }>('select last_used_at from sessions where id = ?', [id]);
      // The last second of the previous hour: the use in this hour is not recorded yet.
      await stack.database('update sessions set last_used_at = ? where id = ?', [(lastUsedAt - HOUR) * 1000, id]);
      expect(await isAlive(call, session)).toBe(true);
      await until(async () => ((await stored())[0]?.last_used_at ?? 0) >= lastUsedAt * 1000, {
        what: 'the recorded use',
      });
      expect((await listOf(call, session))[0]?.lastUsedAt).toBeGreaterThanOrEqual(lastUsedAt);
    });

    test('an expired session is not listed', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const id = await idOf(call, await logIn(call, person));
      await stack.database('update sessions set expires_at = 1 where id = ?', [id]);
      expect((await listOf(call, session)).map((one) => one.id)).not.toContain(id);
    });

    test('a session of the previous version works until it ends, and is not listed', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const old = [await logIn(call, person), await logIn(call, person)];
      for (const token of old) {
        const { key, value } = await sessionEntry(stack, token);
        const { id, ...before } = JSON.parse(value);
        await stack.database('delete from sessions where id = ?', [id]);
        await replaceEntry(stack, key, JSON.stringify(before));
      }
      expect(await Promise.all(old.map((token) => isAlive(call, token)))).toEqual([true, true]);
      expect(await listOf(call, old[0] ?? '')).toMatchObject([{ current: false }]);
      expect((await call('auth.logout', undefined, { session: old[0] })).status).toBe(200);
      expect(await Promise.all(old.map((token) => isAlive(call, token)))).toEqual([false, true]);
      expect((await call('auth.logoutAll', undefined, { session })).status).toBe(200);
      expect(await Promise.all(old.map((token) => isAlive(call, token)))).toEqual([false, false]);
    });

    test('a User-Agent is only text: a device name or nothing', async () => {
      const { call } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const names: string[] = [];
      for (const agent of ['<script>alert(1)</script>/1 (x', 'curl/8.5.0', `${'x'.repeat(8000)}/1`]) {
        const reply = await call('auth.login', { ...person, password: PASSWORD }, { headers: { 'user-agent': agent } });
        names.push((await listOf(call, sessionIn(reply) ?? '')).find(({ current }) => current)?.device ?? '');
      }
      expect(names).toEqual(['Unknown device', 'curl', 'Unknown device']);
      expect(await isAlive(call, session)).toBe(true);
    });
  },
  { env: environmentFor(provider) },
);
