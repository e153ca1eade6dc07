import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  inBrowser as inBrowserOf,
  isAlive,
  kindsOf,
  loggedIn,
  logIn,
  mailsSettled,
  PASSWORD,
  registered,
  type Scenario,
  sessionIn,
  verified,
} from '../rig/scenario.ts';
import { codeOf, forgetLastCode, pendingIn, setUpApp } from '../rig/totp-scenario.ts';

/** Administrators who act for users: IMPERSONATION. */

const SERVICE_TOKEN = 'token-of-the-billing-service';

/** An administrator whose session has a second factor. */
async function strongAdministrator(scenario: Scenario) {
  const admin = await administrator(scenario);
  return { ...admin, ...(await setUpApp(scenario, admin)) };
}

type Admin = Awaited<ReturnType<typeof strongAdministrator>>;

/** A new session of the administrator, by password and code. */
async function logInAgain({ call, stack }: Scenario, { id, email, secret }: Admin): Promise<string> {
  await forgetLastCode(stack, id);
  const first = await call('auth.login', { email, password: PASSWORD });
  const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending: pendingIn(first) });
  expect(reply.status).toBe(200);
  return sessionIn(reply) ?? '';
}

const actFor = async ({ call }: Scenario, { session }: { session: string }, id: string) => {
  const reply = await call('users.impersonate', { id }, { session });
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return sessionIn(reply) ?? '';
};

const rowsOf = ({ stack }: Scenario, userId: string) =>
  stack.database<{
    id: string;
    method: string;
    address: string;
    device: string;
    expires_at: number;
    created_at: number;
  }>('select * from sessions where user_id = ? order by id', [userId]);

everywhere(
  (scenario) => {
    test('the administrator’s session becomes one of the user for 30 minutes, which the profile marks', async () => {
      const { call } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await verified(scenario())];
      const reply = await call('users.impersonate', { id: user.id }, { session: admin.session });
      expect(reply.data).toMatchObject({ success: true, user: { id: user.id, email: user.email } });
      expect(reply.setCookies).toEqual([expect.stringMatching(/^auth_session=.*Max-Age=1800/)]);
      const session = sessionIn(reply) ?? '';
      const { data } = await call('profile.get', undefined, { session });
      expect(data.user.id).toBe(user.id);
      const left = data.impersonation.expiresAt - Date.now() / 1000;
      expect(data.impersonation.by).toBe(admin.id);
      expect(left).toBeGreaterThan(1700);
      expect(left).toBeLessThanOrEqual(1801);
      // An instance of the previous release knows no actors: it must take the session for an ended one.
      const stored = (await entriesOf(scenario().stack, 'session:*')).filter(({ value }) => value.includes(user.id));
      expect(stored.map(({ value }) => JSON.parse(value).epoch)).toEqual([-1]);
      const [row] = await rowsOf(scenario(), user.id);
      expect(Number(row?.expires_at) - Number(row?.created_at)).toBe(30 * 60_000);
      expect(await isAlive(call, admin.session)).toBe(false);
      const { createServiceClient } = await loadClient();
      const service = createServiceClient({ url: scenario().stack.url, token: SERVICE_TOKEN });
      const seen = await procedureOf(service, 'service.session').mutate({ token: session });
      expect(seen).toMatchObject({ user: { id: user.id }, impersonation: { by: admin.id } });
    });

    test('the user reads it in devices, activity and mail, but not who it is or where', async () => {
      const { call, stack } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await loggedIn(scenario())];
      const address = clientAddress();
      const headers = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0' };
      const reply = await call('users.impersonate', { id: user.id }, { session: admin.session, address, headers });
      const session = sessionIn(reply) ?? '';
      expect((await call('profile.update', { bio: 'Helped' }, { session, address, headers })).status).toBe(200);
      expect((await call('auth.logout', undefined, { session, address, headers })).status).toBe(200);

      const own = { session: user.session };
      const { data: activity } = await call('activity.list', undefined, own);
      const acts = activity.data.slice(0, 3);
      expect(acts.map(({ kind }: { kind: string }) => kind)).toEqual(['logged-out', 'profile-changed', 'impersonated']);
      for (const act of acts) expect(act).toMatchObject({ actor: 'administrator', address: '', device: '' });
      expect(JSON.stringify(activity)).not.toContain(admin.id);
      const stored = await stack.database<{ actor_id: string; address: string }>(
        "select actor_id, address from activity where user_id = ? and actor = 'administrator'",
        [user.id],
      );
      expect(stored).toEqual(Array(3).fill({ actor_id: admin.id, address }));
      await stack.waitForMail({ to: user.email, subject: 'An administrator' });
      await mailsSettled(stack, user.email);
      const subjects = (await stack.mailsTo(user.email)).map(({ subject }) => subject);
      expect(subjects.filter((subject) => subject.startsWith('New login'))).toEqual([]);
    });

    test('while it lasts, the user lists it as a device without address, and can end it', async () => {
      const { call } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await loggedIn(scenario())];
      const session = await actFor(scenario(), admin, user.id);
      const { data } = await call('sessions.list', undefined, { session: user.session });
      const [listed] = data.data;
      expect(listed).toMatchObject({ method: 'impersonation', address: '', device: '', current: false });
      expect((await call('sessions.end', { id: listed.id }, { session: user.session })).status).toBe(200);
      expect(await isAlive(call, session)).toBe(false);
    });

    test('it is no login of the user: no device becomes known, no language changes', async () => {
      const { call, stack } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await verified(scenario())];
      const marks = () => stack.database('select device_marks, browser_language from users where id = ?', [user.id]);
      const before = await marks();
      const options = { session: admin.session, headers: { 'accept-language': 'de' } };
      await call('users.impersonate', { id: user.id }, options);
      expect(await marks()).toEqual(before);
      expect(await kindsOf(stack, user.id)).not.toContain('logged-in');
    });

    test('it is refused what needs a recent credential, and whatever only the user may do', async () => {
      const { call, stack } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await verified(scenario())];
      const session = await actFor(scenario(), admin, user.id);
      const in_ = inBrowserOf(session);
      const recent: [string, unknown][] = [
        ['account.changeEmail', { email: `new-${user.email}` }],
        ['account.delete', undefined],
        ['account.export', undefined],
        ['keys.create', { name: 'Backup', scopes: ['profile:read'], expiresInDays: 30 }],
        ['passkeys.beginRegistration', undefined],
        ['totp.begin', undefined],
        ['recoveryCodes.renew', undefined],
      ];
      for (const [procedure, input] of recent) {
        const reply = await call(procedure, input, in_);
        expectRefusal(reply, 403, 'REAUTHENTICATION_REQUIRED');
      }
      const own: [string, unknown][] = [
        ['auth.reauthenticate', { password: PASSWORD }],
        ['account.changePassword', { currentPassword: PASSWORD, newPassword: 'Another-Engine-1844' }],
        ['account.confirmEmail', { token: 'A'.repeat(43) }],
        ['auth.beginPasskey', { purpose: 'reauthenticate' }],
        ['authorizations.device', { userCode: 'WDJB-MJHT' }],
        ['consents.accept', { version: '2026-11' }],
        ['upload.presign', { type: 'post', contentType: 'image/png', size: 100 }],
        ['upload.confirm', { key: 'uploads/02KqT8YzJv0aP3mWfR7xLd.png' }],
        ['upload.address', { name: '02KqT8YzJv0aP3mWfR7xLd.png' }],
        ['upload.publish', { name: '02KqT8YzJv0aP3mWfR7xLd.png' }],
        ['upload.remove', { name: '02KqT8YzJv0aP3mWfR7xLd.png' }],
        ['auth.logoutAll', undefined],
        ['sessions.end', { id: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' }],
        ['keys.revoke', { id: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' }],
        ['grants.revoke', { id: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c' }],
        ['passkeys.rename', { id: '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c', name: 'Mine' }],
      ];
      for (const [procedure, input] of own) {
        const reply = await call(procedure, input, in_);
        expectRefusal(reply, 403, 'FORBIDDEN');
        expect(reply.details?.['session']?.rule).toBe('impersonation');
      }
      const form = new FormData();
      form.set('type', 'avatar');
      form.set('file', new File(['no image'], 'a.png', { type: 'image/png' }));
      const image = await fetch(`${stack.url}/api/upload/image`, {
        method: 'POST',
        headers: { cookie: `auth_session=${session}` },
        body: form,
      });
      expect([image.status, await image.json()]).toMatchObject([403, { code: 'FORBIDDEN' }]);
      expectRefusal(await call('users.find', {}, { session }), 403, 'FORBIDDEN');
      expectRefusal(await call('users.impersonate', { id: admin.id }, { session }), 403, 'FORBIDDEN');
      expect((await call('auth.login', user)).status).toBe(200);
    });

    test('it needs an administrator with a recent credential and a second factor', async () => {
      const { call, stack } = scenario();
      const user = await verified(scenario());
      const { session } = await loggedIn(scenario());
      expectRefusal(await call('users.impersonate', { id: user.id }, { session }), 403, 'FORBIDDEN');
      const weak = await administrator(scenario());
      const reply = await call('users.impersonate', { id: user.id }, { session: weak.session });
      expectRefusal(reply, 403, 'FORBIDDEN');
      expect(reply.details?.['user']?.rule).toBe('second_factor');
      const strong = await strongAdministrator(scenario());
      await growOld(stack, strong.id);
      const late = await call('users.impersonate', { id: user.id }, { session: strong.session });
      expectRefusal(late, 403, 'REAUTHENTICATION_REQUIRED');
      expect(await rowsOf(scenario(), user.id)).toEqual([]);
      expect(await eventsOf(stack, user.id, 'impersonated')).toEqual([]);
    });

    test('nobody acts for an administrator, oneself, or a user who could not log in', async () => {
      const { call, stack } = scenario();
      const [admin, other] = [await strongAdministrator(scenario()), await administrator(scenario())];
      const [blocked, deleted] = [await verified(scenario()), await loggedIn(scenario())];
      const { id: unverified } = await registered(scenario());
      await stack.database('update users set blocked_at = 1 where id = ?', [blocked.id]);
      await call('account.delete', undefined, { session: deleted.session });
      const refusals: [string, number, string][] = [
        [admin.id, 403, 'FORBIDDEN'],
        [other.id, 403, 'FORBIDDEN'],
        [blocked.id, 403, 'ACCOUNT_BLOCKED'],
        [deleted.id, 403, 'ACCOUNT_DELETED'],
        [unverified, 403, 'EMAIL_NOT_VERIFIED'],
        ['user_01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c', 404, 'NOT_FOUND'],
      ];
      for (const [id, status, code] of refusals)
        expectRefusal(await call('users.impersonate', { id }, { session: admin.session }), status, code);
      expect(await isAlive(call, admin.session)).toBe(true);
    });

    describe('it ends with', () => {
      interface Both {
        admin: Admin;
        user: Awaited<ReturnType<typeof loggedIn>>;
      }
      const ends: [string, (both: Both) => Promise<unknown>][] = [
        ['a logout of the user on all devices', ({ user }) => call('auth.logoutAll', undefined, user)],
        [
          'a new password of the user',
          ({ user }) =>
            call('account.changePassword', { currentPassword: PASSWORD, newPassword: 'Another-Engine-1844' }, user),
        ],
        ['the user’s deletion', ({ user }) => call('account.delete', undefined, user)],
        [
          'a logout of the administrator on all devices',
          async ({ admin }) => call('auth.logoutAll', undefined, { session: await logInAgain(scenario(), admin) }),
        ],
        [
          'the end of the administrator’s session, which is listed',
          async ({ admin }) => {
            const session = await logInAgain(scenario(), admin);
            const { data } = await call('sessions.list', undefined, { session });
            const { id } = data.data.find(({ current }: { current: boolean }) => !current);
            return call('sessions.end', { id }, { session });
          },
        ],
        ['a block of the administrator', ({ admin }) => byAnother('users.block', { id: admin.id })],
        ['the administrator’s demotion', ({ admin }) => byAnother('users.setRole', { id: admin.id, role: 'user' })],
        ['the administrator’s deletion', ({ admin }) => byAnother('users.delete', { id: admin.id })],
        ['a block of the user', ({ user }) => byAnother('users.block', { id: user.id })],
      ];
      const call: Scenario['call'] = (procedure, input, options) => {
        const { session } = options ?? {};
        return scenario().call(procedure, input, { session });
      };
      const byAnother = async (procedure: string, input: unknown) =>
        call(procedure, input, await administrator(scenario()));

      test.each(ends)('%s', async (_, end) => {
        const both = { admin: await strongAdministrator(scenario()), user: await loggedIn(scenario()) };
        const session = await actFor(scenario(), both.admin, both.user.id);
        expect(await isAlive(scenario().call, session)).toBe(true);
        expect(await end(both)).toMatchObject({ status: 200 });
        expect(await isAlive(scenario().call, session)).toBe(false);
      });
    });

    test('logouts of an administrator that race with the act leave no session of the user', async () => {
      const { call } = scenario();
      const user = await verified(scenario());
      const admin = await strongAdministrator(scenario());
      for (let round = 0; round < 8; round++) {
        const session = round === 0 ? admin.session : await logInAgain(scenario(), admin);
        const [begun, ended] = await Promise.all([
          call('users.impersonate', { id: user.id }, { session }),
          call('auth.logoutAll', undefined, { session }),
        ]);
        // Whichever comes second finds its session ended, or no longer recent.
        expect([200, 401, 403]).toContain(begun.status);
        const opened = sessionIn(begun);
        if (ended.status === 200 && opened) expect(await isAlive(call, opened)).toBe(false);
        if (ended.status !== 200) expect(ended.status).toBe(401);
      }
    });

    test('it ends the administrator’s session with it; on its own that ends after 30 minutes too', async () => {
      const { call } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await verified(scenario())];
      const session = await actFor(scenario(), admin, user.id);
      const [own] = await rowsOf(scenario(), admin.id);
      expect(Math.abs(Number(own?.expires_at) - Date.now() - 30 * 60_000)).toBeLessThan(60_000);
      expect((await call('auth.logout', undefined, { session })).status).toBe(200);
      expect(await rowsOf(scenario(), admin.id)).toEqual([]);
    });

    test('a login in its place is the administrator’s logout, and no act of the user', async () => {
      const { call, stack } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await verified(scenario())];
      const session = await actFor(scenario(), admin, user.id);
      const another = await verified(scenario());
      await logIn(call, another, { session });
      expect(await isAlive(call, session)).toBe(false);
      const rows = await stack.database<{ actor: string }>(
        "select actor from activity where user_id = ? and kind = 'logged-out'",
        [user.id],
      );
      expect(rows).toEqual([{ actor: 'administrator' }]);
    });
  },
  { env: { IMPERSONATION: 'on', SERVICE_TOKENS: `billing:${hash('sha256', SERVICE_TOKEN)}` } },
);

describe('quiet', () => {
  everywhere(
    (scenario) => {
      test('the user is not mailed, but reads it in the activity', async () => {
        const { stack } = scenario();
        const [admin, user] = [await strongAdministrator(scenario()), await verified(scenario())];
        await actFor(scenario(), admin, user.id);
        await mailsSettled(stack, user.email);
        expect((await stack.mailsTo(user.email)).map(({ subject }) => subject)).toHaveLength(1);
        expect(await eventsOf(stack, user.id, 'impersonated')).toHaveLength(1);
      });
    },
    { env: { IMPERSONATION: 'quiet' } },
  );
});

describe('off', () => {
  everywhere((scenario) => {
    test('it is not found', async () => {
      const { call } = scenario();
      const [admin, user] = [await strongAdministrator(scenario()), await verified(scenario())];
      expectRefusal(await call('users.impersonate', { id: user.id }, { session: admin.session }), 404, 'NOT_FOUND');
      expect(await isAlive(call, admin.session)).toBe(true);
    });
  });
});
