import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { callerOf } from './contract/callers.ts';
import { logIn, mailsSettled, PASSWORD } from './contract/scenario.ts';
import { freshEmail } from './rig/address.ts';
import { type Collector, type Span, startCollector, type Tree, treeBelow } from './rig/otlp.ts';
import { type Service, startService } from './rig/service.ts';
import { until } from './rig/until.ts';
import { png } from './uploads/corpus.ts';
import { imageForm, sendForm, startUploading, type Uploading, uploader } from './uploads/storage.ts';

const { version } = packageJson;

/** A trace that a caller has begun, and the header that says so. */
function callersTrace({ sampled = true } = {}) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${sampled ? '01' : '00'}` } };
}

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

  /** The spans of a trace, once it has all of these. */
  const traceWith = (traceId: string, ...names: string[]): Promise<Span[]> =>
    until(
      () => {
        const spans = collector.spans().filter((span) => span.traceId === traceId);
        return names.every((name) => spans.some((span) => span.name === name)) ? spans : undefined;
      },
      { what: `the spans ${names.join(', ')}` },
    );

  test('a registration is one trace, which continues the caller’s, down to the delivery of its mail', async () => {
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
      resource: { 'service.name': 'accounts-under-test', 'service.version': version },
      failed: false,
    });
    expect(named('INSERT users')?.attributes).toMatchObject({
      'db.system.name': 'mysql',
      'db.operation.name': 'INSERT',
      'db.collection.name': 'users',
    });
    const commands = spans.filter(({ attributes }) => attributes['db.system.name'] === 'redis');
    expect(commands.map((command) => command.parentSpanId)).toEqual(commands.map(() => named('auth.register')?.spanId));
    expect(commands.length).toBeGreaterThan(0);
    expect(service.output()).toContain(`"trace_id":"${traceId}"`);
  });

  test('a mail that was asked for later is delivered in the trace of its request', async () => {
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

  test('an upload shows its calls of the storage', async () => {
    const { session } = await uploader(uploading);
    const { traceId, headers } = callersTrace();
    const image = { bytes: await png(8, 8) };
    expect(await sendForm(uploading, session, imageForm(image), headers)).toMatchObject({ status: 200 });
    await traceWith(traceId, 'POST /api/upload/image', 'upload.image', 'S3 PutObject');
  });

  test('refusals are no errors, and a caller’s decision not to sample is kept', async () => {
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
      attributes: { 'error.type': expect.stringMatching(/^[A-Z_]+$/) },
      failed: false,
    });
    expect(collector.spans().filter(({ traceId }) => traceId === unseen.traceId)).toEqual([]);
  });

  test('spans have no value of a user, no token and no path as it was sent; background polls make none', async () => {
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

test('a share of new traces is recorded, and each that the caller records', async () => {
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
  // With its mail, which was the last: those of the others have been delivered or are being.
  await until(() => collector.spans().some(({ name }) => name === 'deliver verify-email'), { what: 'the delivery' });
  await service.stop();
  expect(new Set(collector.spans().map(({ traceId }) => traceId))).toEqual(new Set([seen.traceId]));
  collector.stop();
});

test('spans are sent as protobuf unless JSON is asked for, and the last ones when the process ends', async () => {
  const collector = await startCollector();
  const service = await startService({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  await fetch(`${service.url}/api/health`);
  await service.stop();
  const types = new Set(collector.bodies().map(({ type }) => type));
  expect([...types]).toEqual(['application/x-protobuf']);
  expect(collector.bodies().some(({ body }) => body.includes('GET /api/health'))).toBe(true);
  collector.stop();
});

test('a collector that is away costs no request, and is told once', async () => {
  const collector = await startCollector();
  collector.stop();
  const service = await startService({ env: collector.env });
  for (let i = 0; i < 5; i++) expect((await fetch(`${service.url}/api/health`)).status).toBe(200);
  const warning = /traces cannot be sent/g;
  await until(() => warning.test(service.output()), { what: 'the warning', within: 30_000 });
  expect((await fetch(`${service.url}/api/health`)).status).toBe(200);
  expect(await service.stop()).toBe(0);
  expect(service.output().match(warning)).toHaveLength(1);
});
