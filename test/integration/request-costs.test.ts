import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Call, type CallOptions, callerOf } from '../contract/rig/callers.ts';
import { withKey } from '../contract/rig/key-scenario.ts';
import { CALLBACK, relyingParty } from '../contract/rig/relying-party.ts';
import { documented, loggedIn, mailsSettled, surfacesOn } from '../contract/rig/scenario.ts';
import { noise } from '../contract/uploads/corpus.ts';
import { imageForm } from '../contract/uploads/storage.ts';
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

describe.each(surfacesOn('real', documented))('over %s', (surface) => {
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

test('an image costs exactly this', async () => {
  const { session } = await loggedIn({ stack, call: callerOf('rest', stack.url) });
  // More than a connection holds while nobody reads from it.
  const bytes = await noise();
  const found = await costOf(async (headers) => {
    const form = imageForm({ bytes });
    const cookie = `auth_session=${session}`;
    const response = await fetch(`${stack.url}/api/upload/image`, {
      method: 'POST',
      body: form,
      headers: { ...headers, cookie },
    });
    expect(response.status).toBe(200);
  });
  // Its session is read before the body and after it; a reservation and the stored image are a transaction each.
  const reserved = ['BEGIN', 'COMMIT', 'INSERT uploads', 'SELECT upload_usage', 'UPDATE upload_usage'];
  const kept = ['BEGIN', 'COMMIT', 'INSERT activity', 'UPDATE uploads'];
  expect(found).toEqual({
    mysql: ['SELECT sessions', 'SELECT sessions', ...reserved, ...kept].sort(),
    redis: ['EVALSHA', 'MGET', 'MGET'],
    hashes: 0,
  });
});

describe('an application', () => {
  const scenario = () => ({ stack, call: callerOf('rest', stack.url) });
  const VERIFIER = 'v'.repeat(43);

  async function application() {
    const party = await relyingParty(scenario());
    const { session } = await loggedIn(scenario());
    const basic = { authorization: `Basic ${Buffer.from(`${party.id}:${party.secret}`).toString('base64')}` };
    const post = async (path: string, form: Record<string, string>, headers = {}): Promise<Record<string, string>> => {
      const body = new URLSearchParams(form);
      const response = await fetch(stack.url + path, { method: 'POST', body, headers: { ...basic, ...headers } });
      expect(response.status).toBe(200);
      return (await response.json()) as Record<string, string>;
    };
    const authorized = async () => {
      const parameters = { scope: 'openid email offline_access', prompt: 'consent' };
      const { callback } = await party.authorize(session, { parameters, verifier: VERIFIER });
      return callback?.searchParams.get('code') ?? '';
    };
    const exchange = (code: string, headers = {}) =>
      post(
        '/oauth/token',
        { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER },
        headers,
      );
    return { post, authorized, exchange };
  }

  test('a code costs exactly this', async () => {
    const { authorized, exchange } = await application();
    const codes: string[] = [];
    for (let i = 0; i <= TRIES; i++) codes.push(await authorized());
    expect(await costOf((headers) => exchange(codes.pop() ?? '', headers))).toEqual({
      mysql: [
        'BEGIN',
        'BEGIN',
        'COMMIT',
        'COMMIT',
        'INSERT oauth_artifacts',
        'SELECT applications',
        'SELECT grants',
        'UPDATE oauth_artifacts',
      ],
      redis: ['SET'],
      hashes: 0,
    });
  });

  test('a refresh costs exactly this', async () => {
    const { post, authorized, exchange } = await application();
    let tokens = await exchange(await authorized());
    const refresh = async (headers: Record<string, string>) => {
      const form = { grant_type: 'refresh_token', refresh_token: tokens['refresh_token'] ?? '' };
      tokens = await post('/oauth/token', form, headers);
    };
    expect(await costOf(refresh)).toEqual({
      mysql: [
        'BEGIN',
        'COMMIT',
        'INSERT oauth_artifacts',
        'SELECT applications',
        'SELECT grants',
        'UPDATE oauth_artifacts',
      ],
      redis: ['EVALSHA', 'EVALSHA', 'SET'],
      hashes: 0,
    });
  });

  test('userinfo and introspection cost exactly this', async () => {
    const { post, authorized, exchange } = await application();
    const { access_token: token = '' } = await exchange(await authorized());
    const userinfo = async (headers: Record<string, string>) => {
      const answer = await fetch(`${stack.url}/oauth/userinfo`, {
        headers: { ...headers, authorization: `Bearer ${token}` },
      });
      expect(await answer.json()).toMatchObject({ email_verified: true });
    };
    expect(await costOf(userinfo)).toEqual({
      mysql: ['SELECT applications', 'SELECT grants', 'SELECT users'],
      redis: ['MGET'],
      hashes: 0,
    });
    const introspect = async (headers: Record<string, string>) =>
      expect(await post('/oauth/introspect', { token }, headers)).toMatchObject({ active: true });
    expect(await costOf(introspect)).toEqual({
      mysql: ['SELECT applications', 'SELECT grants'],
      redis: ['MGET'],
      hashes: 0,
    });
  });
});
