import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfig } from '../../server/config/index.ts';
import type { TextStore } from '../../server/parts/key-value/contract.ts';
import { openTextStore } from '../../server/parts/key-value/index.ts';
import { createLog } from '../../server/telemetry/log.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { withClient } from '../rig/servers/redis.ts';
import { startRedisCluster } from '../rig/servers/redis-cluster.ts';
import { startRedisSentinels } from '../rig/servers/redis-sentinel.ts';
import { until } from '../rig/until.ts';

/** Keys in the slots of each master. */
const KEYS = Array.from({ length: 30 }, (_, i) => `key-${i}`);
/** The store's own deadline, and a margin for a busy machine. */
const MAX_MS = 500 + 500;
const SOON_MS = 1000 + 500;

interface Servers {
  env: Record<string, string>;
  /** Those that hold keys now. */
  masters(): Promise<PrivateServer[]>;
  isMaster(server: PrivateServer): Promise<boolean>;
  settled(): Promise<void>;
  stop(): Promise<void>;
}

async function cluster(): Promise<Servers> {
  const { url, masters, nodes, settled, stop } = await startRedisCluster();
  const isMaster = async (server: PrivateServer) => {
    const others = nodes.filter((node) => node !== server);
    const states = await Promise.all(others.map((node) => withClient(node.url, (client) => client.cluster('INFO'))));
    return !states.every((state) => state.includes('cluster_state:ok')) || (await masters()).includes(server);
  };
  return { env: { REDIS_URL: url }, masters, isMaster, settled, stop };
}

async function sentinels(): Promise<Servers> {
  const { url, sentinel, master, settled, stop } = await startRedisSentinels();
  const isMaster = async (server: PrivateServer) => {
    const named = await master();
    const role = () => withClient(named.url, (client) => client.info('replication'));
    return named === server || !(await role()).includes('role:master');
  };
  const masters = async () => [await master()];
  return { env: { REDIS_URL: url, REDIS_SENTINEL: sentinel }, masters, isMaster, settled, stop };
}

/** Whether all replicas of a master have what was written, while nothing writes: they confirm it once a second. */
const isReplicated = async ({ url }: PrivateServer) => {
  const facts = await withClient(url, (client) => client.info('replication'));
  const written = /master_repl_offset:(\d+)/.exec(facts)?.[1];
  const replicas = [...facts.matchAll(/state=online,offset=(\d+)/g)];
  return replicas.length > 0 && replicas.every(([, received]) => received === written);
};

/** Reads and counts under every key, until it is stopped. */
function startUse(store: TextStore) {
  const count = store.counter({ name: 'uses', points: 1_000_000, seconds: 900 });
  const calls = new Map<string, number>();
  const seen = { longestMs: 0, lastFailure: 0, refusals: new Set<unknown>(), wrong: new Set<unknown>() };
  let isOver = false;
  const timed = async <T>(work: Promise<T>): Promise<T | undefined> => {
    const start = performance.now();
    try {
      return await work;
    } catch (error) {
      seen.lastFailure = performance.now();
      seen.refusals.add((error as { code?: unknown }).code);
      return undefined;
    } finally {
      seen.longestMs = Math.max(seen.longestMs, performance.now() - start);
    }
  };
  const use = async (key: string) => {
    while (!isOver) {
      calls.set(key, (calls.get(key) ?? 0) + 1);
      const [value] = await Promise.all([timed(store.get(key)), timed(count(key))]);
      if (value !== undefined && value !== key) seen.wrong.add(value);
      await pause(10);
    }
  };
  const uses = Promise.all(KEYS.map(use));
  return {
    seen,
    /** Returns the uses of each key, answered or not. */
    async finish() {
      isOver = true;
      await uses;
      return calls;
    },
  };
}

describe.each([
  ['Redis Cluster', cluster],
  ['Sentinels', sentinels],
])('%s', (_name, start) => {
  let servers: Servers;
  let store: TextStore;
  beforeAll(async () => {
    servers = await start();
    const config = parseConfig({ LOG_LEVEL: 'silent', ...servers.env });
    store = await openTextStore(config, await createLog(config));
    await until(() => store.ping().then(() => true));
  });
  afterAll(async () => {
    await store.close();
    await servers.stop();
  });

  const someMaster = async () => {
    const [first] = await servers.masters();
    if (!first) throw new Error('no master');
    return first;
  };
  const used = async (key: string) => Number(await store.get(`uses:${key}`));

  test('stores, reads and counts keys on any node', async () => {
    const count = store.counter({ name: 'attempts', points: 5, seconds: 60 });
    for (const key of KEYS.slice(0, 10)) {
      const name = `own-${key}`;
      expect(await store.set(name, key, { ttlMs: 60_000, ifExists: true })).toBe(false);
      expect(await store.set(name, key, { ttlMs: 60_000 })).toBe(true);
      const taken = await Promise.all(Array.from({ length: 8 }, () => store.take(name)));
      expect(taken.filter((value) => value === key)).toHaveLength(1);
      const attempts = await Promise.all(Array.from({ length: 20 }, () => count(key)));
      expect(attempts.filter(({ allowed }) => allowed)).toHaveLength(5);
    }
    expect(await Promise.all(KEYS.map((key) => store.get(`none-${key}`)))).toEqual(KEYS.map(() => null));
  });

  test('a command without a reply is not sent again', async () => {
    const count = store.counter({ name: 'once', points: 5, seconds: 60 });
    // Every connection is in use.
    await Promise.all(KEYS.map((key) => store.get(key)));
    const master = await someMaster();
    const outcomes = await withClient(master.url, async (operator) => {
      master.pause();
      const counts = Promise.allSettled(KEYS.map(count));
      await nextTurn();
      // Together with the counts: usually executed, but the connection ends before the reply.
      const kill = operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await nextTurn();
      master.resume();
      expect(await kill).toBeGreaterThan(0);
      return counts;
    });
    await until(() => Promise.all(KEYS.map((key) => store.get(key))));
    const counted = await Promise.all(KEYS.map((key) => store.get(`once:${key}`)));
    const isAnswered = outcomes.map(({ status }) => status === 'fulfilled');
    expect(isAnswered).toContain(false);
    expect(counted.filter((uses, i) => uses !== '1' && (uses !== null || isAnswered[i]))).toEqual([]);
  });

  test.each([
    ['killed', (server: PrivateServer) => server.down({ kill: true }), (server: PrivateServer) => server.up()],
    ['frozen', async (server: PrivateServer) => server.pause(), async (server: PrivateServer) => server.resume()],
  ])('with a master that is %s: right answers or 503, none late, nothing counted twice', async (_how, end, restore) => {
    await Promise.all(KEYS.map((key) => store.set(key, key, { ttlMs: 600_000 })));
    const before = new Map(await Promise.all(KEYS.map(async (key) => [key, await used(key)] as const)));
    await servers.settled();
    await until(async () => (await Promise.all((await servers.masters()).map(isReplicated))).every(Boolean), {
      what: 'the replicas to have all keys',
    });
    const load = startUse(store);
    const master = await someMaster();
    await end(master);
    await until(() => load.seen.refusals.size > 0, { what: 'the failure' });
    await until(async () => !(await servers.isMaster(master)), { what: 'the failover' });
    const failedOver = performance.now();
    await until(() => performance.now() - Math.max(load.seen.lastFailure, failedOver) > 2000);
    const outageMs = load.seen.lastFailure - failedOver;
    await restore(master);
    await servers.settled();
    const calls = await load.finish();
    expect(load.seen).toMatchObject({ refusals: new Set(['SERVICE_UNAVAILABLE']), wrong: new Set() });
    expect(outageMs).toBeLessThan(SOON_MS);
    expect(load.seen.longestMs).toBeLessThan(MAX_MS);
    const counted = await Promise.all(KEYS.map(used));
    const tooOften = KEYS.filter((key, i) => (counted[i] ?? 0) - (before.get(key) ?? 0) > (calls.get(key) ?? 0));
    expect(tooOften).toEqual([]);
    console.log(
      `answers again ${Math.round(outageMs)} ms after the failover; the longest took ${Math.round(load.seen.longestMs)} ms`,
    );
  });
});
