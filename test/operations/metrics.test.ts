import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { counters, gauges, histograms } from '../../server/telemetry/catalogue.ts';
import { version } from '../../server/version.ts';
import { callerOf } from '../contract/rig/callers.ts';
import {
  administrator,
  loggedIn,
  logIn,
  mailsSettled,
  registered,
  stackNames,
  verified,
} from '../contract/rig/scenario.ts';
import { INFECTED, sender } from '../contract/uploads/scan.ts';
import type { Uploading } from '../contract/uploads/storage.ts';
import { type Metrics, metricsOnFreePort } from '../rig/observe/metrics.ts';
import { startService } from '../rig/process/service.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { type HttpScanner, startHttpScanner } from '../rig/servers/scanner.ts';
import { type Stack, type StackName, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

const PASSWORD_WRONG = 'Wrong-Password-1843';

/** Has a series for each webhook. */
const ofWebhooks = ['account_webhook_failing_seconds', 'account_webhook_oldest_age_seconds'];
/** Only with CHALLENGE, with which the refusals counted here would be others. */
const ofChallenges = ['account_challenges_total'];
/** Embedded parts have no connections to count. */
const onlyReal = ['account_database_connections_used', 'account_database_connections_free', 'account_database_waiting'];

describe.each(stackNames)('on %s parts', (name: StackName) => {
  let metrics: Metrics;
  let stack: Stack;
  let scanner: HttpScanner;
  beforeAll(async () => {
    metrics = await metricsOnFreePort();
    scanner = await startHttpScanner();
    stack = await startStack(name, { env: { METRICS_PORT: String(metrics.port), SCAN_URL: scanner.url } });
  });
  afterAll(async () => {
    await stack?.stop();
    await scanner?.stop();
  });

  const requests = (labels: Record<string, string>) =>
    metrics.value('http_server_request_duration_seconds_count', labels).then((value) => value ?? 0);

  test('exposes every metric of the catalogue, and those of process and event loop', async () => {
    const call = callerOf('rest', stack.url);
    await loggedIn({ stack, call });
    const samples = await metrics.scrape();
    const names = new Set(samples.map((sample) => sample.name.replace(/_(?:bucket|sum|count)$/, '')));
    const expected = Object.keys({ ...histograms, ...counters, ...gauges }).filter(
      (metric) => (name === 'real' || !onlyReal.includes(metric)) && ![...ofWebhooks, ...ofChallenges].includes(metric),
    );
    expect(expected.filter((metric) => !names.has(metric))).toEqual([]);
    for (const metric of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']) {
      expect(names).toContain(metric);
    }
    expect(samples).toContainEqual({ name: 'account_build_info', labels: { version }, value: 1 });
    expect(samples).toContainEqual({ name: 'account_database_up', labels: {}, value: 1 });
    expect(samples).toContainEqual({ name: 'account_key_value_store_up', labels: {}, value: 1 });
    expect(samples).toContainEqual({ name: 'account_scanner_up', labels: {}, value: 1 });
  });

  test('a malformed request target is refused like any bad request, and counted', async () => {
    const before = await requests({ method: 'GET', route: '(none)', status: '400' });
    const socket = connect(Number(new URL(stack.url).port), '127.0.0.1');
    socket.write('GET http://[::/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"code":"VALIDATION_FAILED"');
    expect(answer).toMatch(/^x-request-id: /im);
    await until(async () => (await requests({ method: 'GET', route: '(none)', status: '400' })) > before);
  });

  test('counts logins by outcome', async () => {
    const call = callerOf('rest', stack.url);
    const outcomes = ['success', 'wrong_password', 'unverified', 'limited'];
    const counts = () =>
      Promise.all(
        outcomes.map(
          async (outcome) => (await metrics.value('account_logins_total', { method: 'password', outcome })) ?? 0,
        ),
      );
    const person = await verified({ stack, call });
    const { email, password } = await registered({ stack, call });
    const before = await counts();
    await logIn(call, person);
    const address = clientAddress();
    for (let i = 0; i < 5; i++) await call('auth.login', { ...person, password: PASSWORD_WRONG }, { address });
    for (let i = 0; i < 2; i++) await call('auth.login', { ...person, password: PASSWORD_WRONG }, { address });
    await call('auth.login', { email, password });
    const after = await counts();
    expect(after.map((value, i) => value - (before[i] ?? 0))).toEqual([1, 5, 1, 2]);
  });

  test('counts a request by its documented path or its procedure', async () => {
    const [rest, trpc] = [callerOf('rest', stack.url), callerOf('trpc', stack.url)];
    const byPath = { method: 'GET', route: '/api/users/{id}', status: '404' };
    const byName = { method: 'GET', route: '/trpc/users.get', status: '404' };
    const before = [await requests(byPath), await requests(byName)];
    await rest('users.get', { id: 'nobody' });
    await trpc('users.get', { id: 'nobody' });
    await trpc('users.get', { id: 'nobody' });
    expect([await requests(byPath), await requests(byName)]).toEqual([(before[0] ?? 0) + 1, (before[1] ?? 0) + 2]);
  });

  test('unknown paths create no series', async () => {
    const routes = async () =>
      new Set((await metrics.scrape()).map(({ labels }) => `${labels.method} ${labels.route}`));
    const send = (path: string, method = 'GET') => fetch(stack.url + path, { method }).then((reply) => reply.text());
    const batchOf = (length: number) => `/trpc/${Array(length).fill('health').join(',')}?batch=1&input=%7B%7D`;
    const once = () =>
      Promise.all([
        send(`/${randomUUID()}`),
        send(`/${randomUUID()}`, 'PROPFIND'),
        send(`/${randomUUID()}`, 'MKCOL'),
        send(`/api/users/${randomUUID()}`),
        send(`/auth/${randomUUID()}`),
        send(`/trpc/${randomUUID()}`),
        send(`/uploads/${randomUUID()}.png`),
      ]);
    await once();
    await send(batchOf(2));
    const before = await routes();
    for (let i = 0; i < 5; i++) await once();
    for (let i = 3; i < 9; i++) await send(batchOf(i));
    expect(await routes()).toEqual(before);
    expect([...before].filter((route) => /PROPFIND|MKCOL|,/.test(route))).toEqual([]);
  });

  test('counts mails as they are delivered, and then the outbox is empty', async () => {
    const call = callerOf('rest', stack.url);
    const sent = async () => (await metrics.value('account_mail_attempts_total', { outcome: 'sent' })) ?? 0;
    const unwanted = async () => (await metrics.value('account_mail_attempts_total', { outcome: 'unwanted' })) ?? 0;
    const person = await verified({ stack, call });
    await mailsSettled(stack, person.email);
    const before = [await sent(), await unwanted()] as const;
    await call('auth.forgotPassword', { email: person.email });
    await call('auth.forgotPassword', { email: freshEmail() });
    await until(async () => (await sent()) === before[0] + 1 && (await unwanted()) === before[1] + 1);
    await until(async () => (await metrics.value('account_outbox_pending_mails')) === 0);
    expect(await metrics.value('account_outbox_oldest_age_seconds')).toBe(0);
  });

  test('counts a removal with its age once it is due or running', async () => {
    const call = callerOf('rest', stack.url);
    const { id, email, session } = await loggedIn({ stack, call });
    const due = () => metrics.value('account_removals_due');
    const age = async () => (await metrics.value('account_removals_oldest_age_seconds')) ?? 0;
    await call('account.delete', undefined, { session });
    await until(async () => (await due()) === 0);
    await stack.database('update removals set due_at = 1 where user_id = ?', [id]);
    const begun = () => stack.database('select user_id from removals where user_id = ? and begun_at is not null', [id]);
    await until(async () => (await begun()).length === 1 && (await due()) === 1 && (await age()) < 3600);
    await stack.database('update removals set begun_at = begun_at - 3600000 where user_id = ?', [id]);
    await until(async () => (await due()) === 1 && (await age()) >= 3600);
    await stack.database('update outbox set created_at = created_at - 3600001 where email = ?', [email]);
    await until(async () => (await due()) === 0 && (await age()) === 0);
  });

  test('the port serves nothing else', async () => {
    const ask = (path: string, method = 'GET') =>
      fetch(`http://127.0.0.1:${metrics.port}${path}`, { method }).then(({ status }) => status);
    expect(await Promise.all([ask('/'), ask('/api/health'), ask('/metrics', 'POST'), ask('/metrics?x=1')])).toEqual([
      404, 404, 404, 200,
    ]);
    expect((await fetch(`${stack.url}/metrics`)).status).toBe(404);
  });
});

test('removals are counted up to 100,000', async () => {
  const metrics = await metricsOnFreePort();
  const stack = await startStack('embedded', { env: { METRICS_PORT: String(metrics.port) } });
  try {
    // In progress: no process takes them before the end of their leases.
    await stack.database(
      `insert into removals (user_id, begun_at, due_at)
       with recursive n(i) as (select 1 union all select i + 1 from n where i <= 100000)
       select 'removed-' || i, ?, ? from n`,
      [Date.now(), Date.now() + 15_000],
    );
    await until(async () => (await metrics.value('account_removals_due')) === 100_000);
  } finally {
    await stack.stop();
  }
});

test('counts what the scanner says, and shows whether it is there', async () => {
  const [metrics, scanner] = [await metricsOnFreePort(), await startHttpScanner()];
  const stack = await startStack('embedded', {
    env: { METRICS_PORT: String(metrics.port), SCAN_URL: scanner.url },
  });
  try {
    const person = await sender({ stack, s3: undefined } as Uploading);
    const [clean, infected] = [await person.sent(), await person.sent(INFECTED)];
    await person.becomes(clean.key, 'stored');
    await person.becomes(infected.key, 'quarantined');
    await person.declared(9);
    const scans = (outcome: string) => metrics.value('account_upload_scans_total', { outcome });
    expect([await scans('clean'), await scans('infected'), await scans('failed')]).toEqual([1, 1, 0]);
    await until(async () => (await metrics.value('account_uploads_quarantined', {})) === 1);
    expect(await metrics.value('account_uploads_pending', {})).toBe(1);
    const isUp = () => metrics.value('account_scanner_up', {});
    scanner.behave('hang');
    // The first scrape after those of the cache: later ones would share its ping.
    const changed = await until(async () => {
      const value = await isUp();
      return value !== 1 && { value };
    });
    expect(changed).toEqual({ value: 0 });
    scanner.behave('work');
    await until(async () => (await isUp()) === 1);
    await scanner.down();
    await until(async () => (await isUp()) === 0);
    await person.sent();
    await until(async () => ((await scans('failed')) ?? 0) > 0);
  } finally {
    await stack.stop();
    await scanner.stop();
  }
});

test('a webhook fails from its first failure on, and an event that is no longer stored is no failure', async () => {
  const metrics = await metricsOnFreePort();
  const stack = await startStack('embedded', { env: { METRICS_PORT: String(metrics.port) } });
  try {
    const scenario = { stack, call: callerOf('rest', stack.url) };
    const { session } = await administrator(scenario);
    const fields = { url: 'https://hooks.example.com/', types: ['user.restored'] };
    const { id } = (await scenario.call('webhooks.create', fields, { session })).data.webhook;
    const queue = (webhook: string, kind: string) =>
      stack.database(
        `insert into webhook_deliveries (webhook_id, event_id, number, kind, user_id, state, attempts, due_at, created_at)
         values (?, ?, 1, ?, ?, 'waiting', 0, 1, 1)`,
        [webhook, randomUUID(), kind, randomUUID()],
      );
    // Of a newer release: it waits.
    for (const webhook of [id, 'application']) await queue(webhook, 'newer-kind');
    await stack.database(
      `insert into webhooks (id, url, types, include, description, secret, enabled_at, due_at, created_at, failing_since)
       values ('application', 'https://app.example.com/', 'logout', '', '', '', 1, 0, 1, 1)`,
    );
    const values = async (name: string) =>
      (await metrics.scrape()).filter((sample) => sample.name === `account_webhook_${name}`);
    await until(async () => ((await values('oldest_age_seconds'))[0]?.value ?? 0) > 3600);
    expect(await values('failing_seconds')).toEqual([
      { name: 'account_webhook_failing_seconds', labels: { webhook: id }, value: 0 },
    ]);
    await stack.database('update webhooks set failing_since = 1 where id = ?', [id]);
    await until(async () => ((await values('failing_seconds'))[0]?.value ?? 0) > 3600);
    expect(await values('oldest_age_seconds')).toHaveLength(1);
    await queue(id, 'verified');
    const outcome = (name: string) => metrics.value('account_webhook_deliveries_total', { outcome: name });
    await until(async () => (await outcome('no_event')) === 1);
    expect(await outcome('failed')).toBe(0);
  } finally {
    await stack.stop();
  }
});

test('without SCAN_URL there are no metrics of a scanner', async () => {
  const metrics = await metricsOnFreePort();
  const service = await startService({ env: { METRICS_PORT: String(metrics.port) } });
  const names = (await metrics.scrape()).map(({ name }) => name);
  expect(names.filter((name) => /scan|uploads_pending|quarantined/.test(name))).toEqual([]);
  await service.stop();
});

test('counts challenges by procedure and outcome', async () => {
  const metrics = await metricsOnFreePort();
  const service = await startService({ env: { METRICS_PORT: String(metrics.port), CHALLENGE: 'always' } });
  const reply = await callerOf('rest', service.url)('auth.forgotPassword', { email: freshEmail() });
  expect(reply.code).toBe('CHALLENGE_REQUIRED');
  const count = (outcome: string) =>
    metrics.value('account_challenges_total', { procedure: 'auth.forgotPassword', outcome });
  expect(await Promise.all(['demanded', 'solved', 'failed'].map(count))).toEqual([1, 0, 0]);
  await service.stop();
});

test('without METRICS_PORT there are no metrics', async () => {
  const service = await startService();
  expect((await fetch(`${service.url}/metrics`)).status).toBe(404);
  await service.stop();
});
