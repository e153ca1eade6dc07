import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { expectRefusal, inEveryForm, kindsOf, loggedIn, PASSWORD } from '../rig/scenario.ts';

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
    const { session, id } = await loggedIn(scenario());
    const before = await call('profile.get', undefined, { session });
    const kinds = await kindsOf(stack, id);
    const reply = await call(procedure, input, { session, headers: { 'expected-user': shown.id } });
    expectRefusal(reply, 409, 'OTHER_USER');
    expect(reply.setCookies).toEqual([]);
    expect((await call('profile.get', undefined, { session })).data).toEqual(before.data);
    expect(await kindsOf(stack, id)).toEqual(kinds);

    const own = await call(procedure, input, { session, headers: { 'expected-user': id } });
    expect(own).toMatchObject({ status: 200 });
  });

  test('an access key of another user reads nothing', async () => {
    const { call } = scenario();
    const shown = await loggedIn(scenario());
    const { session, id } = await loggedIn(scenario());
    const { data } = await call('keys.create', { name: 'backup', scopes: ['profile:read'] }, { session });
    const withKey = (user: string) =>
      call('profile.language', undefined, { key: data.secret, headers: { 'expected-user': user } });
    expectRefusal(await withKey(shown.id), 409, 'OTHER_USER');
    expect(await withKey(id)).toMatchObject({ status: 200 });
  });

  test('who is logged in is answered whatever user is expected', async () => {
    const { call } = scenario();
    const shown = await loggedIn(scenario());
    const { session, id } = await loggedIn(scenario());
    const reply = await call('profile.get', undefined, { session, headers: { 'expected-user': shown.id } });
    expect(reply).toMatchObject({ status: 200, data: { user: { id } } });
  });
});
