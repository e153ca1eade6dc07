import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { type Metrics, metricsOnFreePort } from '../rig/observe/metrics.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedis } from '../rig/servers/redis.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** Faults are made on private servers, so the tests of this file run sequentially. */
let servers: { mysql: PrivateServer; redis: PrivateServer };
let metrics: Metrics;
let stack: Stack;

beforeAll(async () => {
  const [mysql, redis] = await Promise.all([startMysql(), startRedis()]);
  servers = { mysql, redis };
  metrics = await metricsOnFreePort();
  const env = { METRICS_PORT: String(metrics.port) };
  stack = await startStack('real', { mysqlUrl: mysql.url, redisUrl: redis.url, env });
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([servers.mysql.stop(), servers.redis.stop()]);
});

// Undoes what a failed test has left frozen.
afterEach(() => {
  servers.mysql.resume();
  servers.redis.resume();
});

/** The maximum duration of a scrape: two seconds for its gauges, and a margin for a loaded machine. */
const SCRAPE_MS = 4000;

/** The gauges of rows and parts in a scrape, with their values. */
async function gaugesNow() {
  const started = performance.now();
  const samples = await metrics.scrape();
  expect(performance.now() - started).toBeLessThan(SCRAPE_MS);
  expect(samples.some(({ name }) => name === 'process_cpu_seconds_total')).toBe(true);
  expect(samples.some(({ name }) => name === 'http_server_request_duration_seconds_count')).toBe(true);
  return Object.fromEntries(samples.map(({ name, value }) => [name, value]));
}

test.each([
  {
    part: 'mysql',
    gauge: 'account_database_up',
    missing: ['account_outbox_pending_mails', 'account_uploads_due', 'account_removals_due'],
  },
  { part: 'redis', gauge: 'account_key_value_store_up', missing: [] },
] as const)(
  'while $part hangs a scrape returns the other metrics in time, and all of them afterwards',
  async (fault) => {
    const { part, gauge, missing } = fault;
    const other = part === 'mysql' ? 'account_key_value_store_up' : 'account_database_up';
    await until(async () => (await gaugesNow())[gauge] === 1);
    servers[part].pause();
    await until(async () => (await gaugesNow())[gauge] === 0);
    const during = await gaugesNow();
    expect(during[other]).toBe(1);
    expect(missing.filter((name) => name in during)).toEqual([]);
    servers[part].resume();
    await until(async () => (await gaugesNow())[gauge] === 1);
    await until(async () => {
      const afterwards = await gaugesNow();
      return missing.every((name) => name in afterwards);
    });
  },
);

test('a registration that its limit cannot count is accepted, and the failure is counted', async () => {
  const call = callerOf('rest', stack.url);
  const failures = () => metrics.value('account_background_failures_total', { what: 'count_limit' });
  const before = await failures();
  servers.redis.pause();
  const person = { name: 'Ada', email: freshEmail(), password: 'Analytical-1843' };
  expect((await call('auth.register', person)).status).toBe(201);
  servers.redis.resume();
  expect(await failures()).toBe((before ?? Number.NaN) + 1);
});

test('any number of scrapers cost one query in two seconds', async () => {
  const [before] = await stack.database<{ Value: string }>("show global status like 'Com_select'");
  const started = performance.now();
  for (let i = 0; i < 50; i++) await Promise.all([metrics.scrape(), metrics.scrape()]);
  const seconds = (performance.now() - started) / 1000;
  const [after] = await stack.database<{ Value: string }>("show global status like 'Com_select'");
  // Outbox, uploads and a ping for the metrics; the two workers poll once a second each.
  const expected = 3 * (seconds / 2 + 1) + 2 * (seconds + 1);
  expect(Number(after?.Value) - Number(before?.Value)).toBeLessThanOrEqual(expected + 2);
});
