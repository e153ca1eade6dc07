import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfig } from '../../server/config/index.ts';
import { openTextStore } from '../../server/parts/key-value/index.ts';
import { createLog } from '../../server/telemetry/log.ts';
import { type Call, callerOf, type Reply } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type SurplusProxy, startSurplusProxy } from '../rig/servers/proxy.ts';
import { startRedis, withClient } from '../rig/servers/redis.ts';
import { startRedisCluster } from '../rig/servers/redis-cluster.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { unlimited } from './load.ts';

const USERS = 20;
/** Calls per user. */
const CALLS = 20;
/** Answers between two surplus replies. */
const INJECT_EVERY = 100;

let redis: PrivateServer;
let proxy: SurplusProxy;
let stack: Stack;
let call: Call;
beforeAll(async () => {
  redis = await startRedis();
  proxy = await startSurplusProxy(redis.port);
  stack = await startStack('real', { redisUrl: `redis://127.0.0.1:${proxy.port}`, env: unlimited });
  call = callerOf('rest', stack.url);
});
afterAll(async () => {
  await stack?.stop();
  await proxy?.stop();
  await redis?.stop();
});

type Person = Awaited<ReturnType<typeof loggedIn>>;

/** Each user reads and changes the own profile sequentially, concurrently with all others. */
async function burst(people: Person[], ownOf: (person: Person) => string, onReply: () => void) {
  const replies: { person: Person; reply: Reply }[] = [];
  const ask = async (person: Person) => {
    for (let i = 0; i < CALLS; i++) {
      const reply = await (i % 2 === 0
        ? call('profile.get', undefined, { session: person.session })
        : call('profile.update', { location: ownOf(person) }, { session: person.session }));
      replies.push({ person, reply });
      onReply();
    }
  };
  await Promise.all(people.map(ask));
  return replies;
}

describe.each([
  ['+OK', () => Buffer.from('+OK\r\n')],
  ['no value', () => Buffer.from('*1\r\n$-1\r\n')],
  ['a number', () => Buffer.from(':1\r\n')],
  ['the reply of another command', (answer: Buffer) => answer],
])('a surplus Redis reply (%s)', (name, surplus) => {
  // checks: 76
  test('no request gets another session, nobody is logged out, and the connection closes', async () => {
    const people: Person[] = [];
    for (let i = 0; i < USERS; i++) people.push(await loggedIn({ stack, call }));
    const ownOf = ({ email }: Person) => `${name}: ${email}`.slice(0, 100);

    let answered = 0;
    const replies = await burst(people, ownOf, () => {
      if (++answered % INJECT_EVERY === INJECT_EVERY / 2) proxy.inject(surplus);
    });

    const isOfAnother = ({ person, reply }: (typeof replies)[number]) =>
      reply.status === 200 && reply.data.user.email !== person.email;
    expect(replies.filter(isOfAnother)).toEqual([]);
    expect(new Set(replies.map(({ reply }) => reply.status))).toEqual(new Set([200, 503]));
    expect(replies.flatMap(({ reply }) => reply.setCookies)).toEqual([]);

    await until(async () => (await fetch(`${stack.url}/readyz`)).status === 200);
    for (const person of people) {
      const { status, data } = await call('profile.get', undefined, { session: person.session });
      expect([status, data.user.email]).toEqual([200, person.email]);
      expect(['', ownOf(person)]).toContain(data.user.location);
    }
  });
});

// checks: 76
test('an unexpected reply also closes the connection, and the next one works', async () => {
  const person = await loggedIn({ stack, call });
  const profile = () => call('profile.get', undefined, { session: person.session });
  const times = (text: string) => (stack.services[0]?.output() ?? '').split(text).length;
  const before = times('Redis is back');
  expect((await profile()).status).toBe(200);
  proxy.push(Buffer.from('+OK\r\n'));
  await until(() => times('Redis is back') > before, { what: 'another connection' });
  expect((await profile()).data.user.email).toBe(person.email);
});

// checks: 76
test('a surplus reply from a Cluster node: no key gets another’s value', async () => {
  const cluster = await startRedisCluster();
  const [master] = await cluster.masters();
  if (!master) throw new Error('no master');
  const front = await startSurplusProxy(master.port);
  const config = parseConfig({ LOG_LEVEL: 'silent', REDIS_URL: cluster.url });
  try {
    // From now on clients connect through the proxy.
    await withClient(master.url, (node) => node.config('SET', 'cluster-announce-port', front.port));
    await until(async () =>
      (
        await Promise.all(
          cluster.nodes.map(({ url }) =>
            withClient(url, async (node) => JSON.stringify(await node.cluster('SLOTS')).includes(`,${front.port},`)),
          ),
        )
      ).every(Boolean),
    );
    const store = await openTextStore(config, await createLog(config));
    try {
      const keys = Array.from({ length: 60 }, (_, i) => `key-${i}`);
      await until(() => Promise.all(keys.map((key) => store.set(key, key, { ttlMs: 600_000 }))));
      const wrong: unknown[] = [];
      const codes = new Set<string>();
      // Another connection to the node may get a surplus reply, such as the one that reads the slots.
      const burst = async () => {
        await until(() => Promise.all(keys.map((key) => store.get(key))));
        front.inject(() => Buffer.from('+OK\r\n'));
        const outcomes = await Promise.allSettled(keys.map((key) => store.get(key)));
        const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []));
        for (const code of failures) codes.add(code);
        wrong.push(...outcomes.filter((outcome, i) => outcome.status === 'fulfilled' && outcome.value !== keys[i]));
        return failures.length > 0;
      };
      for (let round = 0; round < 5; round++) await until(burst);
      expect(wrong).toEqual([]);
      expect([...codes]).toEqual(['SERVICE_UNAVAILABLE']);
    } finally {
      await store.close();
    }
  } finally {
    await front.stop();
    await cluster.stop();
  }
});
