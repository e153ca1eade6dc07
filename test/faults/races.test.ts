import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrations } from '../../entities/migrations/index.ts';
import { type Call, callerOf, type Reply } from '../contract/callers.ts';
import { isAlive, loggedIn, logIn, mailedToken, PASSWORD, registered, verified } from '../contract/scenario.ts';
import { clientAddress, freshEmail } from '../rig/address.ts';
import { startService } from '../rig/service.ts';
import { type Stack, startStack } from '../rig/stack.ts';

/** Two instances on the same parts, asked at once. */
let stack: Stack;
let call: Call;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', { instances: 2 });
  callers = stack.services.map(({ url }) => callerOf('rest', url));
  call = callerOf('rest', stack.url);
});
afterAll(() => stack.stop());

const atOnce = (times: number, ask: (caller: Call, i: number) => Promise<Reply>) =>
  Promise.all(Array.from({ length: times }, (_, i) => ask(callers[i % callers.length] ?? call, i)));

const tally = (replies: Reply[]) => {
  const counts: Record<string, number> = {};
  for (const { status, code } of replies) {
    const key = code ? `${status} ${code}` : `${status}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
};

test('one address registered forty times at once is one account with one mail', async () => {
  const person = { name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD };
  const replies = await atOnce(40, (caller) => caller('auth.register', person));
  expect(tally(replies)).toEqual({ '201': 1, '409 EMAIL_TAKEN': 39 });
  expect(await stack.database('select id from users where email = ?', [person.email])).toHaveLength(1);
  await stack.waitForMail({ to: person.email });
  expect(await stack.database('select id from outbox where email = ?', [person.email])).toHaveLength(1);
});

test('one reset token used forty times at once sets one password', async () => {
  const { email, id } = await verified({ stack, call });
  await call('auth.forgotPassword', { email });
  const token = await mailedToken(stack, email, 'reset-password');
  const address = clientAddress();
  const passwordOf = (i: number) => `Difference-Engine-${i}`;
  const replies = await atOnce(40, (caller, i) =>
    caller('auth.resetPassword', { token, email, password: passwordOf(i) }, { address }),
  );
  expect(tally(replies)).toEqual({ '200': 1, '400 INVALID_TOKEN': 39 });
  const winner = replies.findIndex(({ status }) => status === 200);
  await logIn(call, { name: '', email, password: passwordOf(winner) });
  expect(await stack.database('select session_epoch from users where id = ?', [id])).toEqual([{ session_epoch: 1 }]);
});

test('a logout on one instance is a logout on the other', async () => {
  const { session, ...person } = await loggedIn({ stack, call });
  expect((await callers[1]?.('auth.logout', undefined, { session }))?.status).toBe(200);
  expect(await isAlive(call, session)).toBe(false);
  const again = await logIn(call, person);
  await callers[0]?.('auth.logoutAll', undefined, { session: again });
  expect(await isAlive(callers[1] as Call, again)).toBe(false);
});

test('login attempts are counted together', async () => {
  const address = clientAddress();
  const attempt = { email: freshEmail(), password: PASSWORD };
  const replies = await atOnce(20, (caller) => caller('auth.login', attempt, { address }));
  expect(tally(replies)).toEqual({ '401 INVALID_CREDENTIALS': 5, '429 RATE_LIMITED': 15 });
});

test('profile changes, mail requests and logouts of one user at once end without a deadlock', async () => {
  const { session, email, password, name } = await loggedIn({ stack, call });
  const sessions = [session, ...(await Promise.all([1, 2, 3].map(() => logIn(call, { email, password, name }))))];
  const replies = await atOnce(60, (caller, i) => {
    if (i % 3 === 0) return caller('profile.update', { bio: `${i}` }, { session: sessions[i % 4] });
    if (i % 3 === 1) return caller('auth.forgotPassword', { email });
    return caller('profile.get', undefined, { session: sessions[i % 4] });
  });
  expect(tally(replies)).toEqual({ '200': 60 });
});

test('instances that start at once on an empty database all come up', async () => {
  const fresh = await startStack('real');
  try {
    const tables = await fresh.database('show tables');
    for (const row of [...tables].reverse()) {
      await fresh.database(`set foreign_key_checks = 0`);
      await fresh.database(`drop table ${Object.values(row)[0]}`);
    }
    const { PORT, DATA_DIR, APP_URL, ...env } = fresh.services[0]?.env ?? {};
    const services = await Promise.all([1, 2, 3].map(() => startService({ env })));
    for (const { url } of services) expect((await callerOf('rest', url)('users.list')).status).toBe(200);
    await registered({ stack: fresh, call: callerOf('rest', services[2]?.url ?? '') });
    expect(await fresh.database('select name from mikro_orm_migrations')).toEqual(
      migrations.map(({ name }) => ({ name })),
    );
    await Promise.all(services.map((service) => service.stop()));
  } finally {
    await fresh.stop();
  }
});
