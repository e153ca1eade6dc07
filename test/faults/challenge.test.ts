import { setTimeout as pause } from 'node:timers/promises';
import pLimit from 'p-limit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { type Challenge, solve } from '../contract/rig/challenge.ts';
import { PASSWORD } from '../contract/rig/scenario.ts';
import { loadClient, procedureOf } from '../rig/client/client.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedis } from '../rig/servers/redis.ts';
import { type Stack, startStack } from '../rig/stack.ts';

/** 10: 10,000 registrations from 5,000 addresses with the default LIMIT_FLOOD. */
const FACTOR = Number(process.env['FLOOD_FACTOR'] ?? 1);
const REGISTRATIONS = 1000 * FACTOR;
const FLOOD = 100 * FACTOR;
/** 10,000 a minute. */
const INTERVAL_MS = 6;

const person = () => ({ email: freshEmail(), password: PASSWORD, name: 'Ada Lovelace' });

/** Registers from half as many addresses as often, and resolves to the codes with their numbers. */
async function flood(call: Call): Promise<Record<string, number>> {
  const addresses = Array.from({ length: REGISTRATIONS / 2 }, clientAddress);
  const codes: Record<string, number> = {};
  const limit = pLimit(50);
  await Promise.all(
    [...addresses, ...addresses].map(async (address, i) => {
      await pause(i * INTERVAL_MS);
      const { code = 'registered' } = await limit(() => call('auth.register', person(), { address }));
      codes[code] = (codes[code] ?? 0) + 1;
    }),
  );
  return codes;
}

describe('a distributed flood of registrations', () => {
  const onStackWith = (challenge: string, define: (stack: () => Stack) => void) =>
    describe(`CHALLENGE=${challenge}`, () => {
      let stack: Stack;
      beforeAll(async () => {
        stack = await startStack('real', { env: { CHALLENGE: challenge, LIMIT_FLOOD: `${FLOOD}/900` } });
      });
      afterAll(() => stack?.stop());
      define(() => stack);
    });

  onStackWith('off', (stack) => {
    test('gets all its hashes: no limit of an address is reached', async () => {
      expect(await flood(callerOf('rest', stack().url))).toEqual({ registered: REGISTRATIONS });
    });
  });

  onStackWith('auto', (stack) => {
    test('gets less than a tenth of them, and users beside it register', async () => {
      const { createClient } = await loadClient();
      const flooding = flood(callerOf('rest', stack().url));
      let isOver = false;
      void flooding.finally(() => {
        isOver = true;
      });
      const waits: number[] = [];
      while (!isOver) {
        const client = createClient({ url: stack().url, headers: { 'x-forwarded-for': clientAddress() } });
        const began = performance.now();
        const reply = await procedureOf(client, 'auth.register').mutate(person());
        waits.push(performance.now() - began);
        expect(reply).toMatchObject({ success: true });
      }
      const codes = await flooding;
      const users = await stack().database('select count(*) as n from users', []);
      waits.sort((a, b) => a - b);
      console.log(
        `${REGISTRATIONS} registrations: ${JSON.stringify(codes)}; ${waits.length} users beside them, who waited ${waits[Math.floor(waits.length / 2)]?.toFixed()} ms (median), ${waits.at(-1)?.toFixed()} ms (longest)`,
      );
      expect(Object.keys(codes).sort()).toEqual(['CHALLENGE_REQUIRED', 'registered']);
      // Half of the flood's limit, and what Redis did not count in time on a busy machine.
      expect(codes['registered']).toBeLessThanOrEqual(REGISTRATIONS / 10);
      expect(Number(users[0]?.['n'])).toBe((codes['registered'] ?? 0) + waits.length);
      expect(waits.length).toBeGreaterThan(0);
    });
  });
});

describe('while Redis is frozen', () => {
  let redis: PrivateServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(() => redis.resume());
  afterAll(() => redis?.stop());

  const withChallenge = async (challenge: string, steps: (call: Call) => Promise<void>) => {
    const stack = await startStack('real', { redisUrl: redis.url, env: { CHALLENGE: challenge } });
    try {
      await steps(callerOf('rest', stack.url));
    } finally {
      redis.resume();
      await stack.stop();
    }
  };

  test('with auto, registration and requests for a mail go on, logins are 503', () =>
    withChallenge('auto', async (call) => {
      redis.pause();
      expect((await call('auth.register', person())).status).toBe(201);
      expect((await call('auth.forgotPassword', { email: freshEmail() })).status).toBe(200);
      expect((await call('auth.login', { email: freshEmail(), password: PASSWORD })).status).toBe(503);
    }));

  test('with always, a registration still needs a solution; logins are 503', () =>
    withChallenge('always', async (call) => {
      redis.pause();
      const refused = await call('auth.register', person());
      expect(refused).toMatchObject({ status: 403, code: 'CHALLENGE_REQUIRED' });
      const { challenge } = refused.details as unknown as { challenge: Challenge };
      const headers = { 'Challenge-Solution': solve(challenge) };
      expect((await call('auth.register', person(), { headers })).status).toBe(201);
      expect((await call('auth.login', { email: freshEmail(), password: PASSWORD })).status).toBe(503);
    }));
});
