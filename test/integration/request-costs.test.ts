import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Call, type CallOptions, callerOf } from '../contract/rig/callers.ts';
import { withKey } from '../contract/rig/key-scenario.ts';
import { mailsSettled, surfacesOn } from '../contract/rig/scenario.ts';
import { type Metrics, metricsOnFreePort } from '../rig/observe/metrics.ts';
import { type Collector, callersTrace, startCollector } from '../rig/servers/otlp.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/**
 * What a hot request asks of MySQL and Redis, and how many passwords it hashes: exact on any machine under any load. The spans of
 * the request's trace are counted, which leaves out the statements of workers.
 */

/** The cheapest of several tries: the first use of a session in an hour is recorded, and Redis gets a script once. */
const TRIES = 3;

interface Cost {
  /** Statements to MySQL by verb and table, sorted. Each is a round trip. */
  mysql: string[];
  /** Commands to Redis, sorted. Each is a round trip. */
  redis: string[];
  hashes: number;
}

let collector: Collector;
let metrics: Metrics;
let s3: S3;
let stack: Stack;

beforeAll(async () => {
  collector = await startCollector();
  metrics = await metricsOnFreePort();
  s3 = await startS3();
  const env = { ...collector.env, ...s3.env, METRICS_PORT: String(metrics.port) };
  stack = await startStack('real', { env });
});
afterAll(async () => {
  await stack?.stop();
  await s3?.stop();
  collector?.stop();
});

const hashesSoFar = async () => (await metrics.value('account_password_wait_seconds_count')) ?? 0;

function callsIn(trace: string): Omit<Cost, 'hashes'> {
  const spans = collector.spans().filter(({ traceId }) => traceId === trace);
  const callsOf = (system: string) =>
    spans
      .filter(({ attributes }) => attributes['db.system.name'] === system)
      .map(({ name }) => name)
      .sort();
  return { mysql: callsOf('mysql'), redis: callsOf('redis') };
}

async function costOf(ask: (headers: Record<string, string>) => Promise<unknown>): Promise<Cost> {
  const before = await hashesSoFar();
  const traces: string[] = [];
  // One more: what ends after the answer to a request has arrived with the spans of the next.
  for (let i = 0; i <= TRIES; i++) {
    const { traceId, headers } = callersTrace();
    await ask(headers);
    traces.push(traceId);
  }
  const hashes = ((await hashesSoFar()) - before) / traces.length;
  const last = traces.pop();
  const hasArrived = () =>
    collector.spans().some(({ traceId, attributes }) => traceId === last && 'http.route' in attributes);
  await until(hasArrived, { what: 'the spans of the last request' });
  const calls = traces.map(callsIn);
  const total = ({ mysql, redis }: Omit<Cost, 'hashes'>) => mysql.length + redis.length;
  return { ...calls.reduce((least, each) => (total(each) < total(least) ? each : least)), hashes };
}

type User = Awaited<ReturnType<typeof withKey>>;

interface Hot {
  ask(call: Call, user: User, options: CallOptions): ReturnType<Call>;
  cost: Cost;
}

const declared = { filename: 'a.png', contentType: 'image/png', size: 1234 };

const hot: Record<string, Hot> = {
  'the profile of a session': {
    ask: (call, { session }, options) => call('profile.get', undefined, { ...options, session }),
    cost: { mysql: ['SELECT sessions'], redis: ['MGET'], hashes: 0 },
  },
  'the profile by an access key': {
    ask: (call, { secret: key }, options) => call('profile.get', undefined, { ...options, key }),
    cost: { mysql: ['SELECT access_keys'], redis: [], hashes: 0 },
  },
  'a login on a known device': {
    ask: (call, { email, password, device }, options) =>
      call('auth.login', { email, password }, { ...options, device }),
    cost: {
      mysql: ['BEGIN', 'COMMIT', 'INSERT activity', 'INSERT sessions', 'SELECT totps', 'SELECT users'],
      redis: ['EVALSHA', 'EVALSHA', 'EVALSHA', 'EVALSHA', 'EVALSHA', 'SET'],
      hashes: 1,
    },
  },
  'the list of users': {
    ask: (call, { session }, options) => call('users.list', { limit: '20' }, { ...options, session }),
    cost: { mysql: ['SELECT users'], redis: [], hashes: 0 },
  },
  'the address of an upload': {
    ask: (call, { session }, options) => call('upload.presign', declared, { ...options, session }),
    cost: {
      mysql: ['BEGIN', 'COMMIT', 'INSERT uploads', 'SELECT sessions', 'SELECT upload_usage', 'UPDATE upload_usage'],
      redis: ['EVALSHA', 'MGET'],
      hashes: 0,
    },
  },
  'a change of the profile': {
    ask: (call, { session }, options) => call('profile.update', { bio: randomUUID() }, { ...options, session }),
    cost: {
      mysql: ['BEGIN', 'COMMIT', 'INSERT activity', 'SELECT sessions', 'SELECT users', 'UPDATE users'],
      redis: ['MGET'],
      hashes: 0,
    },
  },
};

describe.each(surfacesOn('real'))('over %s', (surface) => {
  let user: User;
  let call: Call;
  beforeAll(async () => {
    call = callerOf(surface, stack.url);
    user = await withKey({ stack, call });
    await mailsSettled(stack, user.email);
  });

  test.each(Object.keys(hot))('%s costs exactly this', async (name) => {
    const { ask, cost } = hot[name] as Hot;
    const found = await costOf(async (headers) => {
      expect(await ask(call, user, { headers })).toMatchObject({ status: 200 });
    });
    expect(found).toEqual(cost);
  });
});
