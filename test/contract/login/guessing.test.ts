import { expect, test } from 'vitest';
import { freshEmail } from '../rig/address.ts';
import { until } from '../rig/until.ts';
import type { Call, CallOptions, Reply } from './callers.ts';
import {
  deviceIn,
  eventsOf,
  everywhere,
  expectRefusal,
  loggedIn,
  mailedToken,
  PASSWORD,
  type Person,
  sessionIn,
  verified,
} from './scenario.ts';

/** Wrong passwords for one account, each from an address of its own, and what its owner still can do. */
const OF_ACCOUNT = 3;
const OF_DEVICE = 2;
const WRONG = 'Analytical-Engine-1844';
const NEW_PASSWORD = 'Difference-Engine-1822';

type Guess = { email: string };

const guess = (call: Call, { email }: Guess, options?: CallOptions) =>
  call('auth.login', { email, password: WRONG }, options);

/** As many wrong passwords as one more than unknown devices may give; answers the last refusal. */
async function exhaust(call: Call, account: Guess): Promise<Reply> {
  for (let i = 0; i < OF_ACCOUNT; i++) expectRefusal(await guess(call, account), 401, 'INVALID_CREDENTIALS');
  const refused = await guess(call, account);
  expectLimited(refused, OF_ACCOUNT, 3600);
  return refused;
}

function expectLimited(reply: Reply, points: number, seconds: number): void {
  expectRefusal(reply, 429, 'RATE_LIMITED', `Too many attempts. Please retry after ${seconds / 60} minutes.`);
  expect(reply.headers.get('ratelimit-limit')).toBe(`${points}`);
  const retryAfter = Number(reply.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThan(0);
  expect(retryAfter).toBeLessThanOrEqual(seconds);
  expect(reply.setCookies).toEqual([]);
}

async function open(call: Call, { email, password }: Pick<Person, 'email' | 'password'>, options?: CallOptions) {
  const reply = await call('auth.login', { email, password }, options);
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return { session: sessionIn(reply) ?? '', device: deviceIn(reply) ?? '' };
}

everywhere(
  (scenario) => {
    test('wrong passwords are counted per account, whether there is one or not, with the same answers', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const [known, unknown] = [await exhaust(call, person), await exhaust(call, { email: freshEmail() })];
      const { status, message, code, details } = known;
      expect(unknown).toMatchObject({ status, message, code, details });
      expect([...unknown.headers.keys()]).toEqual([...known.headers.keys()]);
      // The right password is looked at no more, at a restoration neither.
      const right = { email: person.email, password: PASSWORD };
      for (const procedure of ['auth.login', 'account.restore'])
        expectLimited(await call(procedure, right), OF_ACCOUNT, 3600);
      // Other accounts have counts of their own.
      await loggedIn(scenario());
      const reasons = async () => (await eventsOf(stack, person.id, 'login-refused')).map(({ reason }) => reason);
      const isRecorded = async () => (await reasons()).includes('limited');
      await until(isRecorded, { what: 'the record of a refusal' });
    });

    test('an address is one account, however it is written', async () => {
      const { call } = scenario();
      const email = freshEmail();
      const spellings = [email, email.toUpperCase(), email.replace('example', 'Example')];
      for (const spelling of spellings) expect((await guess(call, { email: spelling })).status).toBe(401);
      for (const spelling of spellings) expectLimited(await guess(call, { email: spelling }), OF_ACCOUNT, 3600);
    });

    test('right passwords do not count', async () => {
      const { call } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      for (let i = 0; i < OF_ACCOUNT + 1; i++) {
        await open(call, person);
        const { session } = await open(call, person, { device });
        expect((await call('auth.reauthenticate', { password: PASSWORD }, { session })).status).toBe(200);
      }
      await exhaust(call, person);
    });

    test('of fifty guesses at once no more are looked at', async () => {
      const { call } = scenario();
      const person = await verified(scenario());
      const replies = await Promise.all(Array.from({ length: 50 }, () => guess(call, person)));
      expect(replies.map(({ status }) => status).sort()).toEqual([
        ...Array(OF_ACCOUNT).fill(401),
        ...Array(50 - OF_ACCOUNT).fill(429),
      ]);
    });

    test('a device that has logged in before has a count of its own', async () => {
      const { call } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      const other = await open(call, person);
      await exhaust(call, person);
      for (let i = 0; i < OF_DEVICE + 1; i++) await open(call, person, { device });
      for (let i = 0; i < OF_DEVICE; i++) {
        expectRefusal(await guess(call, person, { device }), 401, 'INVALID_CREDENTIALS');
      }
      expectLimited(await guess(call, person, { device }), OF_DEVICE, 900);
      expectLimited(await call('auth.login', { email: person.email, password: PASSWORD }, { device }), OF_DEVICE, 900);
      await open(call, person, other);
    });

    test('a session has a count of its own, in which its user gives the password and changes it', async () => {
      const { call } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await open(call, person);
      await exhaust(call, person);
      const wrong = { password: WRONG };
      for (let i = 0; i < OF_DEVICE; i++) {
        expectRefusal(
          await call('auth.reauthenticate', wrong, other),
          401,
          'INVALID_CREDENTIALS',
          'The password is wrong',
        );
      }
      expectLimited(await call('auth.reauthenticate', wrong, other), OF_DEVICE, 900);
      const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
      expectLimited(await call('account.changePassword', change, other), OF_DEVICE, 900);
      expect((await call('auth.reauthenticate', { password: PASSWORD }, { session })).status).toBe(200);
      expect((await call('account.changePassword', change, { session })).status).toBe(200);
    });

    test('no cookie but that of a device of this account is a known one', async () => {
      const { call } = scenario();
      const [ada, bob] = [await loggedIn(scenario()), await loggedIn(scenario())];
      const [one, other] = [await open(call, ada), await open(call, bob)];
      await exhaust(call, ada);
      const [[id, mark], [otherId, otherMark]] = [one.device.split('.'), other.device.split('.')];
      const cookies = [
        other.device,
        `${id}.${otherMark}`,
        `${otherId}.${mark}`,
        `${id}.${'A'.repeat(43)}`,
        `${id}`,
        `${id}.${ada.id}`,
        `${one.device}; auth_device=${other.device}`,
      ];
      const right = { email: ada.email, password: PASSWORD };
      for (const device of cookies) expectLimited(await call('auth.login', right, { device }), OF_ACCOUNT, 3600);
      // Beside the mark of another user it is one, as in a browser that both use.
      await open(call, ada, { device: `${one.device}.${otherMark}` });
    });

    test('the cookie of a known device is of no use for other accounts', async () => {
      const { call } = scenario();
      const { device } = await open(call, await loggedIn(scenario()));
      for (const account of [await loggedIn(scenario()), { email: freshEmail() }]) {
        for (let i = 0; i < OF_ACCOUNT; i++) expect((await guess(call, account, { device })).status).toBe(401);
        expectLimited(await guess(call, account, { device }), OF_ACCOUNT, 3600);
      }
    });

    test('a reset makes all devices unknown but its own, from which its user can log in', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      await exhaust(call, person);
      await call('auth.forgotPassword', { email: person.email });
      const token = await mailedToken(stack, person.email, 'reset-password');
      const reset = await call('auth.resetPassword', { token, email: person.email, password: NEW_PASSWORD });
      expect(reset.status).toBe(200);
      const right = { email: person.email, password: NEW_PASSWORD };
      expectLimited(await call('auth.login', right, { device }), OF_ACCOUNT, 3600);
      expect(sessionIn(reset)).toBeUndefined();
      await open(call, right, { device: deviceIn(reset) });
    });

    test('“this was not me” makes all devices unknown', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      const token = await mailedToken(stack, person.email, 'not-me');
      await exhaust(call, person);
      expect((await guess(call, person, { device })).status).toBe(401);
      expect((await call('account.notMe', { token })).status).toBe(200);
      expectLimited(await guess(call, person, { device }), OF_ACCOUNT, 3600);
    });

    test('a reset before the first login makes its device known too', async () => {
      const { call, stack } = scenario();
      const { email } = await verified(scenario());
      await exhaust(call, { email });
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      const reset = await call('auth.resetPassword', { token, email, password: NEW_PASSWORD });
      expect(reset.status).toBe(200);
      await open(call, { email, password: NEW_PASSWORD }, { device: deviceIn(reset) });
    });
  },
  { env: { LIMIT_ACCOUNT: `${OF_ACCOUNT}/3600`, LIMIT_DEVICE: `${OF_DEVICE}/900` } },
);
