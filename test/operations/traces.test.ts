import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { version } from '../../server/version.ts';
import { callerOf } from '../contract/rig/callers.ts';
import { logIn, mailsSettled, PASSWORD } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { imageForm, sendForm, startUploading, type Uploading, uploader } from '../contract/uploads/storage.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { type Collector, callersTrace, type Span, startCollector, type Tree, treeBelow } from '../rig/servers/otlp.ts';
import { until } from '../rig/until.ts';

describe('on MySQL, Redis, SMTP and S3', () => {
  let collector: Collector;
  let uploading: Uploading;
  let service: Service;
  beforeAll(async () => {
    collector = await startCollector();
    uploading = await startUploading('S3', { ...collector.env, OTEL_SERVICE_NAME: 'accounts-under-test' });
    service = uploading.stack.services[0] as Service;
  });
  afterAll(async () => {
    await uploading?.stop();
    collector?.stop();
  });

  /** In the number format of a collector. */
  const serverPort = (variable: string) =>
    expect.toBeOneOf([Number(new URL(service.env[variable] ?? '').port), new URL(service.env[variable] ?? '').port]);

  /** The spans of a trace, once it has all of these. */
  const traceWith = (traceId: string, ...names: string[]): Promise<Span[]> =>
    until(
      () => {
        const spans = collector.spans().filter((span) => span.traceId === traceId);
        return names.every((name) => spans.some((span) => span.name === name)) ? spans : undefined;
      },
      { what: `the spans ${names.join(', ')}` },
    );

  test('a registration is one trace from the caller to the delivery of its mail', async () => {
    const call = callerOf('rest', service.url);
    const { traceId, spanId, headers } = callersTrace();
    const email = freshEmail();
    const reply = await call('auth.register', { name: 'Ada Lovelace', email, password: PASSWORD }, { headers });
    expect(reply.status).toBe(201);
    const spans = await traceWith(traceId, 'POST /auth/register', 'deliver verify-email');

    const tree = treeBelow(spans, spanId);
    const procedure = tree['POST /auth/register']?.['auth.register'] as Tree;
    expect(Object.keys(procedure)).toEqual(expect.arrayContaining(['INSERT users', 'INSERT outbox', 'COMMIT']));
    expect(Object.keys(procedure['deliver verify-email'] ?? {})).toEqual(
      expect.arrayContaining(['send', 'UPDATE outbox']),
    );
    const named = (name: string) => spans.find((span) => span.name === name);
    expect(named('POST /auth/register')).toMatchObject({
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/auth/register',
        'http.response.status_code': 201,
      },
      resource: {
        'service.name': 'accounts-under-test',
        'service.version': version,
        'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
      failed: false,
    });
    expect(named('INSERT users')?.attributes).toMatchObject({
      'db.system.name': 'mysql',
      'db.operation.name': 'INSERT',
      'db.collection.name': 'users',
      'server.port': serverPort('DATABASE_URL'),
    });
    const commands = spans.filter(({ attributes }) => attributes['db.system.name'] === 'redis');
    expect(commands.map((command) => command.parentSpanId)).toEqual(commands.map(() => named('auth.register')?.spanId));
    expect(new Set(commands.map(({ attributes }) => attributes['server.port']))).toEqual(
      new Set([serverPort('REDIS_URL')]),
    );
    expect(named('send')?.attributes).toMatchObject({ 'server.port': serverPort('SMTP_URL') });
    expect(service.output()).toContain(`"trace_id":"${traceId}"`);
  });

  test('a mail requested later is delivered in the trace of its request', async () => {
    const person = await uploader(uploading);
    const call = callerOf('trpc', service.url);
    const { traceId, spanId, headers } = callersTrace();
    await call('auth.forgotPassword', { email: person.email }, { headers });
    const spans = await traceWith(traceId, 'POST /trpc/auth.forgotPassword', 'deliver reset-password');
    const tree = treeBelow(spans, spanId);
    expect(tree['POST /trpc/auth.forgotPassword']?.['auth.forgotPassword']?.['deliver reset-password']).toHaveProperty(
      'send',
    );
  });

  test('an upload shows its storage calls', async () => {
    const { session } = await uploader(uploading);
    const { traceId, headers } = callersTrace();
    const image = { bytes: await png(8, 8) };
    expect(await sendForm(uploading, session, imageForm(image), headers)).toMatchObject({ status: 200 });
    await traceWith(traceId, 'POST /api/upload/image', 'upload.image', 'S3 PutObject');
  });

  test('refusals are not errors, and the caller’s decision not to sample is kept', async () => {
    const call = callerOf('rest', service.url);
    const [seen, unseen] = [callersTrace(), callersTrace({ sampled: false })];
    for (const { headers } of [unseen, seen]) {
      const reply = await call('auth.login', { email: freshEmail(), password: PASSWORD }, { headers });
      expect(reply.status).toBe(401);
    }
    const spans = await traceWith(seen.traceId, 'POST /auth/login', 'auth.login');
    expect(spans.find(({ name }) => name === 'POST /auth/login')).toMatchObject({
      attributes: { 'http.response.status_code': 401 },
      failed: false,
    });
    expect(spans.find(({ name }) => name === 'auth.login')).toMatchObject({
      attributes: { 'error.type': 'INVALID_CREDENTIALS' },
      failed: false,
    });
    expect(collector.spans().filter(({ traceId }) => traceId === unseen.traceId)).toEqual([]);
  });

  test('spans contain no user data, token or raw path; background polls have no spans', async () => {
    const call = callerOf('rest', service.url);
    const person = await uploader(uploading);
    const session = await logIn(call, person);
    const { traceId, headers } = callersTrace();
    await call('profile.update', { bio: 'a bio`from `users`' }, { session });
    await call('users.get', { id: person.id }, { session, headers });
    await mailsSettled(uploading.stack, person.email);
    await traceWith(traceId, 'GET /api/users/{id}');
    const sent = collector
      .bodies()
      .map(({ body }) => body)
      .join('\n');
    for (const secret of [person.email, person.password, person.id, session, 'a bio'])
      expect(sent).not.toContain(secret);
    const roots = collector.spans().filter(({ parentSpanId }) => parentSpanId === undefined);
    expect(roots.filter(({ name }) => !/^[A-Z]+ \/|^[A-Z]+$/.test(name))).toEqual([]);
    expect(roots.filter(({ attributes }) => 'db.system.name' in attributes)).toEqual([]);
  });
});

test('a share of new traces is recorded, and every trace that the caller records', async () => {
  const collector = await startCollector();
  const sampler = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' };
  const service = await startService({ env: { ...collector.env, ...sampler } });
  const [seen, unseen] = [callersTrace(), callersTrace({ sampled: false })];
  const malformed = { traceparent: `00-${'0'.repeat(32)}-${seen.spanId}-01` };
  const body = () => JSON.stringify({ name: 'Ada', email: freshEmail(), password: PASSWORD });
  for (const headers of [{}, malformed, unseen.headers, seen.headers]) {
    const json = { ...headers, 'Content-Type': 'application/json' };
    const reply = await fetch(`${service.url}/auth/register`, { method: 'POST', headers: json, body: body() });
    expect(reply.status).toBe(201);
  }
  // Includes its mail, which was the last: the others have been or are being delivered.
  await until(() => collector.spans().some(({ name }) => name === 'deliver verify-email'), { what: 'the delivery' });
  await service.stop();
  expect(new Set(collector.spans().map(({ traceId }) => traceId))).toEqual(new Set([seen.traceId]));
  collector.stop();
});

test('probes have no spans, even if the caller records them, and an outage has its own name', async () => {
  const collector = await startCollector();
  const service = await startService({
    env: {
      ...collector.env,
      DATABASE_URL: 'mysql://nobody@127.0.0.1:1/accounts',
      REDIS_URL: 'redis://127.0.0.1:1',
      SMTP_URL: 'smtp://127.0.0.1:1',
      MAIL_FROM: 'a@accounts.test',
    },
    ready: false,
  });
  const { headers, traceId } = callersTrace();
  for (const path of ['/livez', '/readyz', '/readyz?x=1']) await fetch(service.url + path, { headers });
  expect((await fetch(`${service.url}/api/users`, { headers })).status).toBe(503);
  await service.stop();
  const spans = collector.spans().filter((span) => span.traceId === traceId);
  expect(spans.map(({ name, attributes }) => [name, attributes['error.type']]).sort()).toEqual([
    ['GET /api/users', '503'],
    ['users.list', 'SERVICE_UNAVAILABLE'],
  ]);
  expect(collector.spans()).toHaveLength(spans.length);
  collector.stop();
});

test('spans are sent as protobuf, or JSON if set, and the last ones at exit', async () => {
  const collector = await startCollector();
  const service = await startService({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  await fetch(`${service.url}/api/health`);
  await service.stop();
  const types = new Set(collector.bodies().map(({ type }) => type));
  expect([...types]).toEqual(['application/x-protobuf']);
  expect(collector.bodies().some(({ body }) => body.includes('GET /api/health'))).toBe(true);
  collector.stop();
});

test('an unreachable collector costs no request, and is logged once', async () => {
  const collector = await startCollector();
  collector.stop();
  const service = await startService({ env: collector.env });
  for (let i = 0; i < 5; i++) expect((await fetch(`${service.url}/api/health`)).status).toBe(200);
  const warning = /traces cannot be sent/g;
  await until(() => warning.test(service.output()), { what: 'the warning' });
  expect((await fetch(`${service.url}/api/health`)).status).toBe(200);
  expect(await service.stop()).toBe(0);
  expect(service.output().match(warning)).toHaveLength(1);
});
