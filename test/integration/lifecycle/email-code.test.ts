import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import { type EmbeddedAccounts, marksIn, openAccounts, refused, request, unverified } from '../rig/accounts.ts';

/** Logins by a mailed code, on embedded parts. */
let service: EmbeddedAccounts;
let invited: EmbeddedAccounts;
let limited: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({ EMAIL_CODES: 'on' });
  invited = await openAccounts({ EMAIL_CODES: 'on', REGISTRATION: 'invited' });
  limited = await openAccounts({
    EMAIL_CODES: 'on',
    LIMIT_CODE: '2/900',
    LIMIT_REGISTER: '1/900',
    LIMIT_MAIL_REQUEST: '1/900',
    LIMIT_LOGIN: '3/900',
  });
});
afterAll(() => Promise.all([service.close(), invited.close(), limited.close()]));
afterEach(() => {
  vi.restoreAllMocks();
});

const loginOf = ({ accounts }: EmbeddedAccounts) => {
  const { emailCode } = accounts.lifecycle;
  if (!emailCode) throw new Error('EMAIL_CODES is off');
  return emailCode;
};

/** Asks for a code and reads it. */
async function codeFor(of: EmbeddedAccounts, email: string, former?: string) {
  const token = await loginOf(of).begin(email, former, request());
  await of.admit(email);
  return { token, code: await of.mailedCode(email) };
}

const finish = (of: EmbeddedAccounts, { token, code }: { token: string | undefined; code: string }, by = request()) =>
  loginOf(of).finish(token, code, by);

const otherThan = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

describe('an address without an account', () => {
  test('gets a verified one without a password, named after the address; its first login is not news', async () => {
    const email = `grace.${freshEmail()}`;
    const asked = await codeFor(service, email);
    const entry = await finish(service, asked);
    const user = await service.userOf(email);
    expect(entry).toMatchObject({
      result: 'logged-in',
      invitedTo: undefined,
      login: { user: { id: user?.id, email } },
    });
    expect(user).toMatchObject({ emailVerified: true, passwordHash: null, name: expect.stringMatching(/^Grace/i) });
    expect(await service.rowsOf('name_words', user ?? { id: '' })).toHaveLength(1);
    expect(await service.eventsOf(user?.id ?? '')).toEqual([
      { kind: 'registered', method: 'email-code' },
      { kind: 'verified' },
      { kind: 'logged-in', method: 'email-code', session: expect.any(String) },
    ]);
    expect(await service.mailsTo(email)).toMatchObject([{ kind: 'email-code', user_id: user?.id }]);
    expect(entry.result === 'logged-in' && marksIn(entry.login.deviceCookie)).toBe(1);
  });

  test('whose account was made since the mail enters that account', async () => {
    const email = freshEmail();
    const asked = await codeFor(service, email);
    const { id } = await service.insertUser((user) => user.changeEmail(email));
    expect(await finish(service, asked)).toMatchObject({ login: { user: { id } } });
  });

  test('that a change of address still reserves gets none', async () => {
    const [user, email] = [await service.insertUser(), freshEmail()];
    const asked = await codeFor(service, email);
    const row = {
      id: 'reserved',
      user_id: user.id,
      email: user.email,
      former: email,
      confirm_hash: 'a',
      undo_hash: 'b',
      browser: null,
      created_at: Date.now(),
      expires_at: Date.now() + 60_000,
      confirmed_at: Date.now(),
    };
    await service.database.write((tables) =>
      tables
        .insertInto('email_changes')
        .values(row as never)
        .execute(),
    );
    await expect(finish(service, asked)).rejects.toEqual(refused('EMAIL_TAKEN'));
    expect(await service.userOf(email)).toBeNull();
  });
});

describe('with REGISTRATION=invited', () => {
  const invite = async (email: string) =>
    invited.database.change((tables) =>
      invited.mail.invitations.issue(tables, { email, invitedBy: null, returnTo: '/welcome' }),
    );

  test('an invited address gets an account, and the target of the invitation', async () => {
    const email = freshEmail();
    await invite(email);
    const entry = await finish(invited, await codeFor(invited, email));
    expect(entry).toMatchObject({ result: 'logged-in', invitedTo: '/welcome' });
    const { id = '' } = (await invited.userOf(email)) ?? {};
    expect((await invited.eventsOf(id))[0]).toEqual({
      kind: 'registered',
      method: 'email-code',
      invitedBy: 'operator',
    });
  });

  test('the code of an invitation that was revoked since is refused', async () => {
    const email = freshEmail();
    const { id } = await invite(email);
    const asked = await codeFor(invited, email);
    await invited.database.change((tables) => invited.mail.invitations.revoke(tables, id));
    await expect(finish(invited, asked)).rejects.toEqual(refused('REGISTRATION_CLOSED'));
    expect(await invited.userOf(email)).toBeNull();
  });

  test('no code is right for an address without an invitation', async () => {
    const asked = await codeFor(invited, freshEmail());
    expect(await finish(invited, asked)).toEqual({ result: 'wrong-code', isOver: false, invitedTo: undefined });
  });
});

/** Another person's password. */
const unproven = (user: User) => {
  user.passwordProven = false;
};
describe('an account', () => {
  test('with a proven password is entered as it is', async () => {
    const user = await service.insertUser();
    const entry = await finish(service, await codeFor(service, user.email));
    expect(entry).toMatchObject({ result: 'logged-in', login: { user: { id: user.id, name: user.name } } });
    expect(await service.eventsOf(user.id)).toEqual([
      { kind: 'logged-in', method: 'email-code', device: 'new', session: expect.any(String) },
    ]);
    expect((await service.userOf(user.email))?.hasPassword).toBe(true);
  });

  test('loses an unproven password of another browser, and is mailed about it at once', async () => {
    const user = await service.insertUser(unproven);
    const asked = await codeFor(service, user.email);
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    await finish(service, asked);
    expect(wake).toHaveBeenCalledTimes(2);
    expect(await service.kindsOf(user.id)).toEqual(['login-methods-removed', 'logged-in']);
    expect(await service.userOf(user.email)).toMatchObject({ hasPassword: false, name: user.name });
  });

  test('that was registered in this browser is verified, and keeps password, name and device', async () => {
    const user = await service.insertUser(unverified);
    const entry = await finish(service, await codeFor(service, user.email));
    expect(await service.kindsOf(user.id)).toEqual(['verified', 'logged-in']);
    expect(await service.eventsOf(user.id)).not.toContainEqual(expect.objectContaining({ device: 'new' }));
    expect(await service.userOf(user.email)).toMatchObject({
      emailVerified: true,
      name: user.name,
      hasPassword: true,
      hasUnprovenPassword: false,
    });
    expect(entry.result === 'logged-in' && marksIn(entry.login.deviceCookie)).toBe(1);
  });

  test('that was registered in another browser is claimed: password, name and mailed links end', async () => {
    const user = await service.insertUser(unverified);
    await service.database.change((tables) => service.mail.tokens.issue(tables, user as never, 'verify-email'));
    const asked = await codeFor(service, user.email);
    await finish(service, asked, { ...request(), browser: 'C'.repeat(43) });
    const kinds = await service.kindsOf(user.id);
    expect(kinds).toEqual(['login-methods-removed', 'profile-changed', 'verified', 'logged-in']);
    expect(await service.eventsOf(user.id)).toContainEqual(expect.objectContaining({ device: 'new' }));
    expect(await service.userOf(user.email)).toMatchObject({
      emailVerified: true,
      name: user.email.split('@')[0],
      hasPassword: false,
    });
    const links = service.database.query((tables) =>
      tables.selectFrom('one_time_tokens').select('id').where('user_id', '=', user.id).execute(),
    );
    expect(await links).toEqual([]);
  });
});

/** What happens to the account between the mail and the code, and what the code then does. */
const blocked = { blocked_at: 1 };
const deleted = { deleted_at: 1 };
test.each<[string, { before?: object; since?: object; code?: string; reasons?: string[] }]>([
  ['nothing', {}],
  ['every session ended', { since: { session_epoch: 1 }, code: 'UNAUTHENTICATED' }],
  ['a block', { since: { ...blocked, session_epoch: 1 }, code: 'ACCOUNT_BLOCKED', reasons: ['blocked'] }],
  ['a block after all sessions ended', { since: { ...blocked, session_epoch: 2 }, code: 'UNAUTHENTICATED' }],
  ['a block before the mail', { before: blocked, code: 'ACCOUNT_BLOCKED', reasons: ['blocked'] }],
  ['a deletion', { since: { ...deleted, session_epoch: 1 }, code: 'UNAUTHENTICATED' }],
  ['a deletion before the mail', { before: deleted, code: 'ACCOUNT_DELETED', reasons: ['deleted'] }],
  ['another address of the account', { since: { email: freshEmail() }, code: 'UNAUTHENTICATED' }],
])('a code after %s', async (_what, { before, since, code, reasons = [] }) => {
  const user = await service.insertUser();
  if (before) await service.change(user, before);
  const asked = await codeFor(service, user.email);
  if (since) await service.change(user, since);
  if (code) await expect(finish(service, asked)).rejects.toEqual(refused(code));
  else expect(await finish(service, asked)).toMatchObject({ result: 'logged-in' });
  const refusals = async () =>
    (await service.eventsOf(user.id)).flatMap((event) => ('reason' in event ? [event.reason] : []));
  if (reasons.length > 0) await until(async () => (await refusals()).length > 0);
  expect(await refusals()).toEqual(reasons);
});

test('a code does not enter a later account of its address', async () => {
  const user = await service.insertUser();
  const asked = await codeFor(service, user.email);
  await service.change(user, { email: freshEmail() });
  await service.insertUser((other) => other.changeEmail(user.email));
  await expect(finish(service, asked)).rejects.toEqual(refused('UNAUTHENTICATED'));
});

describe('a pending login', () => {
  test('ends with its right code, and needs the token of its browser', async () => {
    const { email } = await service.insertUser();
    const { token, code } = await codeFor(service, email);
    await expect(finish(service, { token: undefined, code })).rejects.toEqual(refused('UNAUTHENTICATED'));
    await expect(finish(service, { token: 'x'.repeat(43), code })).rejects.toEqual(refused('UNAUTHENTICATED'));
    await finish(service, { token, code });
    await expect(finish(service, { token, code })).rejects.toEqual(refused('UNAUTHENTICATED'));
  });

  test('of one code and two concurrent requests one logs in', async () => {
    const asked = await codeFor(service, (await service.insertUser()).email);
    const results = await Promise.allSettled([finish(service, asked), finish(service, asked)]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('a wrong code is recorded, and the fifth ends it', async () => {
    const user = await service.insertUser();
    const { token, code } = await codeFor(service, user.email);
    const wrong = { token, code: otherThan(code) };
    const overs: unknown[] = [];
    for (let guess = 1; guess <= 5; guess++) overs.push(await finish(service, wrong));
    expect(overs).toEqual([false, false, false, false, true].map((isOver) => ({ result: 'wrong-code', isOver })));
    await expect(finish(service, { token, code })).rejects.toEqual(refused('UNAUTHENTICATED'));
    await until(async () => (await service.eventsOf(user.id)).length === 5);
    expect((await service.eventsOf(user.id))[0]).toEqual({ kind: 'login-refused', reason: 'wrong-code' });
  });

  test('the right code may be the fifth guess', async () => {
    const { token, code } = await codeFor(service, (await service.insertUser()).email);
    for (let guess = 1; guess <= 4; guess++) await finish(service, { token, code: otherThan(code) });
    expect(await finish(service, { token, code })).toMatchObject({ result: 'logged-in' });
  });

  test('ends when its browser asks again', async () => {
    const { email } = await service.insertUser();
    const former = await codeFor(service, email);
    const next = await codeFor(service, email, former.token);
    await expect(finish(service, former)).rejects.toEqual(refused('UNAUTHENTICATED'));
    expect(await finish(service, next)).toMatchObject({ result: 'logged-in' });
  });

  test('lives ten minutes', async () => {
    const asked = await codeFor(service, (await service.insertUser()).email);
    const now = Date.now();
    const finishAfter = async (minutes: number) => {
      vi.useFakeTimers({ toFake: ['Date'], now: now + minutes * 60_000 });
      try {
        return await finish(service, { ...asked, code: otherThan(asked.code) });
      } finally {
        vi.useRealTimers();
      }
    };
    expect(await finishAfter(9.9)).toMatchObject({ result: 'wrong-code' });
    await expect(finishAfter(10.1)).rejects.toEqual(refused('UNAUTHENTICATED'));
  });
});

test('the code of a blocked account removes nothing', async () => {
  const user = await service.insertUser((stored) => {
    unproven(stored);
    stored.block(1);
  });
  await expect(finish(service, await codeFor(service, user.email))).rejects.toEqual(refused('ACCOUNT_BLOCKED'));
  expect((await service.userOf(user.email))?.hasPassword).toBe(true);
});

test('no code is right before the mail is admitted', async () => {
  const { email } = await service.insertUser();
  const token = await loginOf(service).begin(email, undefined, request());
  const code = await service.mailedCode(email);
  expect(await finish(service, { token, code })).toMatchObject({ result: 'wrong-code' });
});

describe('limits', () => {
  /** Gives a wrong code in a new pending login. */
  const guess = async (email: string, by = request()) => {
    const { token, code } = await codeFor(limited, email);
    return finish(limited, { token, code: otherThan(code) }, by);
  };

  test.each(['an account', 'no account'])(
    'wrong codes count for an address of %s, right ones do not',
    async (whose) => {
      const email = whose === 'an account' ? (await limited.insertUser()).email : freshEmail();
      await guess(email);
      if (whose === 'an account')
        expect(await finish(limited, await codeFor(limited, email))).toMatchObject({ result: 'logged-in' });
      await guess(email);
      const asked = await codeFor(limited, email);
      await expect(finish(limited, asked)).rejects.toEqual(refused('RATE_LIMITED'));
      await guess(freshEmail());
    },
  );

  test('a refusal past the limit is recorded, and an unlock resets the count', async () => {
    const user = await limited.insertUser();
    for (let i = 0; i < 2; i++) await guess(user.email);
    await expect(guess(user.email)).rejects.toEqual(refused('RATE_LIMITED'));
    await until(async () => (await limited.eventsOf(user.id)).length === 3);
    expect(await limited.eventsOf(user.id)).toContainEqual({ kind: 'login-refused', reason: 'limited' });
    await limited.change(user, { limit_epoch: 1 });
    expect(await guess(user.email)).toMatchObject({ result: 'wrong-code' });
  });

  test('each device that the account knows has a count of its own, four times one for all of them', async () => {
    const user = await limited.insertUser();
    const devices = await Promise.all(Array.from({ length: 5 }, () => limited.logIn(user)));
    for (let i = 0; i < 2; i++) await guess(user.email);
    const known = (device: number) => guess(user.email, request({ deviceCookie: devices[device]?.deviceCookie }));
    for (const device of [0, 0, 1, 1, 2, 2]) expect(await known(device)).toMatchObject({ result: 'wrong-code' });
    await expect(known(0)).rejects.toEqual(refused('RATE_LIMITED'));
    for (const device of [3, 3]) expect(await known(device)).toMatchObject({ result: 'wrong-code' });
    await expect(known(4)).rejects.toEqual(refused('RATE_LIMITED'));
  });

  test('a new account counts as a registration of its client, a login does not', async () => {
    const by = request();
    await finish(limited, await codeFor(limited, freshEmail()), by);
    await finish(limited, await codeFor(limited, (await limited.insertUser()).email), by);
    await expect(finish(limited, await codeFor(limited, freshEmail()), by)).rejects.toEqual(refused('RATE_LIMITED'));
  });

  test('each code given counts as a login of its client', async () => {
    const by = request();
    const none = { token: undefined, code: '123456' };
    for (let i = 0; i < 3; i++) await expect(finish(limited, none, by)).rejects.toEqual(refused('UNAUTHENTICATED'));
    await expect(finish(limited, none, by)).rejects.toEqual(refused('RATE_LIMITED'));
  });

  test('each code asked for counts as a mail of its client', async () => {
    const [by, email] = [request(), freshEmail()];
    await loginOf(limited).begin(email, undefined, by);
    await expect(loginOf(limited).begin(email, undefined, by)).rejects.toEqual(refused('RATE_LIMITED'));
    expect(await limited.mailsTo(email)).toHaveLength(1);
  });
});
