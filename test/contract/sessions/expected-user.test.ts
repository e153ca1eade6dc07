import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { expectRefusal, inEveryForm, loggedIn, PASSWORD } from '../rig/scenario.ts';

/** The header Expected-User: a page that still shows one user cannot act on another, whom another tab has logged in. */
inEveryForm((scenario) => {
  const kinds: [procedure: string, input?: object][] = [
    ['profile.update', { name: 'Grace Hopper' }],
    ['account.changeEmail', { email: freshEmail() }],
    ['account.export'],
    ['auth.beginPasskey', { purpose: 'reauthenticate' }],
    ['auth.reauthenticate', { password: PASSWORD }],
    ['auth.logout'],
    ['auth.logoutAll'],
    ['account.delete'],
  ];

  test.each(kinds)('%s for another user than the one of the session changes nothing', async (procedure, input) => {
    const { call, stack } = scenario();
    const shown = await loggedIn(scenario());
    const { session, id, email } = await loggedIn(scenario());
    const before = await call('profile.get', undefined, { session });
    const mails = await stack.mailsTo(email);
    const reply = await call(procedure, input, { session, headers: { 'expected-user': shown.id } });
    expectRefusal(reply, 401, 'UNAUTHENTICATED');
    expect(reply.setCookies).toEqual([]);
    expect((await call('profile.get', undefined, { session })).data).toEqual(before.data);
    expect(await stack.mailsTo(email)).toEqual(mails);

    const own = await call(procedure, input, { session, headers: { 'expected-user': id } });
    expect(own).toMatchObject({ status: 200 });
  });

  test('an access key of another user reads nothing', async () => {
    const { call } = scenario();
    const shown = await loggedIn(scenario());
    const { session, id } = await loggedIn(scenario());
    const { data } = await call('keys.create', { name: 'backup', scopes: ['profile:read'] }, { session });
    const withKey = (user: string) =>
      call('profile.get', undefined, { key: data.secret, headers: { 'expected-user': user } });
    expectRefusal(await withKey(shown.id), 401, 'UNAUTHENTICATED');
    expect(await withKey(id)).toMatchObject({ status: 200, data: { user: { id } } });
  });
});
