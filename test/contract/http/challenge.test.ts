import { describe, expect, test } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { type CallOptions, callerOf, type Reply } from '../rig/callers.ts';
import { type Challenge, solve } from '../rig/challenge.ts';
import { everywhere, onBothStacks, PASSWORD, type Scenario } from '../rig/scenario.ts';

/** CHALLENGE: a proof of work before what costs a hash or a mail (docs/design/limits.md). */

const person = () => ({ email: freshEmail(), password: PASSWORD, name: 'Ada Lovelace' });
const usersOf = ({ stack }: Scenario, email: string) => stack.database('select id from users where email = ?', [email]);
const rowsOf = async (stack: Stack, table: string) =>
  Number((await stack.database(`select count(*) as n from ${table}`))[0]?.['n']);

const isDemanded = ({ status, code }: Reply) => status === 403 && code === 'CHALLENGE_REQUIRED';

/** The challenge in a refusal. */
function challengeIn(reply: Reply) {
  expect(reply).toMatchObject({ status: 403, code: 'CHALLENGE_REQUIRED' });
  const { challenge } = reply.details as unknown as { challenge: Challenge };
  expect(challenge).toMatchObject({
    algorithm: 'SHA-256',
    challenge: expect.stringMatching(/^[0-9a-f]{64}$/),
    maxnumber: expect.any(Number),
    salt: expect.any(String),
    signature: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  return challenge;
}

const withSolution = (solution: string, options: CallOptions = {}): CallOptions => ({
  ...options,
  headers: { 'Challenge-Solution': solution },
});

/** Calls, solves the demanded challenge, and calls again. */
async function solving({ call }: Scenario, procedure: string, input: unknown, options: CallOptions = {}) {
  const solution = solve(challengeIn(await call(procedure, input, options)));
  return { solution, reply: await call(procedure, input, withSolution(solution, options)) };
}

const flooded = [
  ['auth.register', person, undefined],
  ['auth.login', () => ({ email: freshEmail(), password: PASSWORD }), 'INVALID_CREDENTIALS'],
] as const;

describe('off, the default', () => {
  everywhere((scenario) => {
    test('nothing is demanded, whatever is used of a limit, and the header means nothing', async () => {
      const { call } = scenario();
      const address = clientAddress();
      for (let i = 0; i < 5; i++) {
        const reply = await call('auth.login', { email: freshEmail(), password: PASSWORD }, { address });
        expect(reply.code).toBe('INVALID_CREDENTIALS');
      }
      const reply = await call('auth.register', person(), withSolution('nonsense'));
      expect(reply.code).toBeUndefined();
    });
  });
});

describe('always', () => {
  everywhere(
    (scenario) => {
      test('a registration needs a solution; without one no user and no mail exists', async () => {
        const one = scenario();
        const input = person();
        const { reply } = await solving(one, 'auth.register', input);
        expect(reply.code).toBeUndefined();
        expect(await usersOf(one, input.email)).toHaveLength(1);

        const other = person();
        const [users, mails] = [await rowsOf(one.stack, 'users'), await rowsOf(one.stack, 'outbox')];
        expect(isDemanded(await one.call('auth.register', other))).toBe(true);
        expect(await rowsOf(one.stack, 'users')).toBe(users);
        expect(await rowsOf(one.stack, 'outbox')).toBeLessThanOrEqual(mails);
        expect(await usersOf(one, other.email)).toHaveLength(0);
      });

      test.each([
        ['auth.login', { email: 'nobody@example.com', password: PASSWORD }, 'INVALID_CREDENTIALS'],
        ['account.restore', { email: 'nobody@example.com', password: PASSWORD }, 'INVALID_CREDENTIALS'],
        ['auth.forgotPassword', { email: 'nobody@example.com' }, undefined],
        ['auth.resendVerification', { email: 'nobody@example.com' }, undefined],
        ['auth.beginEmailCode', { email: 'nobody@example.com' }, undefined],
      ])('%s needs a solution', async (procedure, input, code) => {
        expect((await solving(scenario(), procedure, input)).reply.code).toBe(code);
      });

      test('a call without a solution does not count: after ten of them a login is still possible', async () => {
        const one = scenario();
        const address = clientAddress();
        const input = { email: freshEmail(), password: PASSWORD };
        for (let i = 0; i < 10; i++) expect(isDemanded(await one.call('auth.login', input, { address }))).toBe(true);
        expect((await solving(one, 'auth.login', input, { address })).reply.code).toBe('INVALID_CREDENTIALS');
      });

      test('a malformed call is refused before its body is read, and then told what is wrong', async () => {
        const { reply } = await solving(scenario(), 'auth.register', { email: 'none' });
        expect(reply.code).toBe('VALIDATION_FAILED');
      });

      test('a solution works once, also for twenty calls at once', async () => {
        const { call } = scenario();
        const solution = solve(challengeIn(await call('auth.register', person())));
        const all = Array.from({ length: 20 }, () => call('auth.register', person(), withSolution(solution)));
        const replies = await Promise.all(all);
        expect(replies.filter(({ code }) => code === undefined)).toHaveLength(1);
        expect(replies.filter(isDemanded)).toHaveLength(19);
      });

      test('a solution is of one procedure', async () => {
        const { call } = scenario();
        const solution = solve(challengeIn(await call('auth.forgotPassword', { email: freshEmail() })));
        expect(isDemanded(await call('auth.register', person(), withSolution(solution)))).toBe(true);
        expect((await call('auth.forgotPassword', { email: freshEmail() }, withSolution(solution))).status).toBe(200);
      });

      test.each(['nonsense', btoa('{}'), 'A'.repeat(9000)])('%.10s is not a solution', async (text) => {
        expect(isDemanded(await scenario().call('auth.register', person(), withSolution(text)))).toBe(true);
      });

      test('a front end of another origin may send the solution and read the refusal', async () => {
        const { stack } = scenario();
        const origin = 'https://app.example.com';
        const headers = { origin, 'x-forwarded-for': clientAddress() };
        const preflight = await fetch(`${stack.url}/auth/register`, {
          method: 'OPTIONS',
          headers: {
            ...headers,
            'access-control-request-method': 'POST',
            'access-control-request-headers': 'challenge-solution,content-type',
          },
        });
        expect(preflight.status).toBe(204);
        expect(preflight.headers.get('access-control-allow-headers')).toContain('challenge-solution');
        const refusal = await fetch(`${stack.url}/auth/register`, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify(person()),
        });
        expect(refusal.status).toBe(403);
        expect(refusal.headers.get('access-control-allow-origin')).toBe(origin);
        expect(await refusal.json()).toMatchObject({ code: 'CHALLENGE_REQUIRED' });
      });
    },
    { env: { CHALLENGE: 'always', EMAIL_CODES: 'on', ALLOWED_ORIGINS: 'https://app.example.com' } },
  );
});

describe('auto', () => {
  everywhere(
    (scenario) => {
      test('half of the logins of an address are free, the others need a solution up to the limit', async () => {
        const one = scenario();
        const address = clientAddress();
        const input = { email: freshEmail(), password: PASSWORD };
        for (let i = 0; i < 3; i++)
          expect((await one.call('auth.login', input, { address })).code).toBe('INVALID_CREDENTIALS');
        for (let i = 0; i < 2; i++)
          expect((await solving(one, 'auth.login', input, { address })).reply.code).toBe('INVALID_CREDENTIALS');
        expect((await solving(one, 'auth.login', input, { address })).reply.code).toBe('RATE_LIMITED');
        // Another address is not concerned.
        expect((await one.call('auth.login', input)).code).toBe('INVALID_CREDENTIALS');
      });

      test('reads of a procedure, which any page can have a browser send, are refused and use up nothing', async () => {
        const { stack, call } = scenario();
        const address = clientAddress();
        for (const path of ['auth.login?batch=1', 'auth.login', 'auth.login,auth.login,auth.login?batch=1&input={}']) {
          const reply = await fetch(`${stack.url}/trpc/${path}`, {
            headers: { 'x-forwarded-for': address, 'sec-fetch-site': 'cross-site' },
          });
          expect(reply.status).toBe(404);
        }
        const input = { email: freshEmail(), password: PASSWORD };
        for (let i = 0; i < 3; i++)
          expect((await call('auth.login', input, { address })).code).toBe('INVALID_CREDENTIALS');
      });

      test('the work doubles with each further quarter of the limit', async () => {
        const one = scenario();
        const address = clientAddress();
        const input = { email: freshEmail(), password: PASSWORD };
        for (let i = 0; i < 3; i++) await one.call('auth.login', input, { address });
        const sizes: number[] = [];
        for (let i = 0; i < 2; i++) {
          sizes.push(challengeIn(await one.call('auth.login', input, { address })).maxnumber);
          await solving(one, 'auth.login', input, { address });
        }
        expect(sizes[1]).toBe(2 * (sizes[0] ?? 0));
      });

      test('any number of calls at once gets no more than half of the limit without a solution', async () => {
        const { call } = scenario();
        const address = clientAddress();
        const input = { email: freshEmail(), password: PASSWORD };
        const all = Array.from({ length: 30 }, () => call('auth.login', input, { address }));
        const replies = await Promise.all(all);
        expect(replies.filter(({ code }) => code === 'INVALID_CREDENTIALS')).toHaveLength(3);
        expect(replies.filter(isDemanded)).toHaveLength(27);
      });

      test('addresses of one /48 share half of its limit', async () => {
        const { call } = scenario();
        const network = Array.from({ length: 3 }, () => Math.floor(Math.random() * 65_536).toString(16)).join(':');
        const input = { email: freshEmail(), password: PASSWORD };
        const codes: (string | undefined)[] = [];
        for (let i = 0; i < 41; i++) {
          // Each in a /56 of its own: 2000:…:0100::, 0200::, …
          const address = `${network}:${(i + 1).toString(16).padStart(2, '0')}00::1`;
          codes.push((await call('auth.login', input, { address })).code);
        }
        expect(codes.slice(0, 40)).not.toContain('CHALLENGE_REQUIRED');
        expect(codes[40]).toBe('CHALLENGE_REQUIRED');
      });
    },
    { env: { CHALLENGE: 'auto' } },
  );

  // Once on each stack: the count is of the whole service.
  onBothStacks(
    (stack) => {
      test.each(flooded)(
        'a flood of %s from many addresses needs solutions from half of LIMIT_FLOOD on, and a solution is accepted',
        async (procedure, inputOf, done) => {
          const one = { stack: stack(), call: callerOf('rest', stack().url) };
          const replies = await Promise.all(Array.from({ length: 60 }, () => one.call(procedure, inputOf())));
          expect(replies.filter(({ code }) => code === done)).toHaveLength(10);
          expect(replies.filter(isDemanded)).toHaveLength(50);
          expect((await solving(one, procedure, inputOf())).reply.code).toBe(done);
          // What was refused made nothing harder, and other procedures have counts of their own.
          expect(challengeIn(await one.call(procedure, inputOf())).maxnumber).toBe(100_000);
          expect((await one.call('auth.forgotPassword', { email: freshEmail() })).status).toBe(200);
        },
      );
    },
    { env: { CHALLENGE: 'auto', LIMIT_FLOOD: '20/900' } },
  );

  everywhere(
    (scenario) => {
      test('the typed client solves by itself and repeats the call', async () => {
        const { stack } = scenario();
        const { createClient } = await loadClient();
        const waits: Promise<void>[] = [];
        const headers = { 'x-forwarded-for': clientAddress() };
        const client = createClient({ url: stack.url, headers, onChallenge: (solving) => waits.push(solving) });
        const input = person();
        const [registered] = await Promise.all([
          procedureOf(client, 'auth.register').mutate(input),
          // In the same request as the registration.
          procedureOf(client, 'auth.forgotPassword').mutate({ email: freshEmail() }),
        ]);
        expect(registered).toMatchObject({ user: { email: input.email } });
        expect(waits).toHaveLength(2);
        await Promise.all(waits);
        await expect(
          procedureOf(client, 'auth.login').mutate({ email: input.email, password: PASSWORD }),
        ).rejects.toMatchObject({
          code: 'EMAIL_NOT_VERIFIED',
        });
      });

      test('a call aborted while its challenge is solved ends', async () => {
        const { stack } = scenario();
        const { createClient } = await loadClient();
        const aborting = new AbortController();
        const client = createClient({ url: stack.url, onChallenge: () => aborting.abort() });
        const input = person();
        await expect(procedureOf(client, 'auth.register').mutate(input, { signal: aborting.signal })).rejects.toThrow();
        expect(await usersOf(scenario(), input.email)).toHaveLength(0);
      });
    },
    { env: { CHALLENGE: 'always' } },
  );
});
