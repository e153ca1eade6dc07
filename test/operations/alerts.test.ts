import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from '../rig/process/service.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { requireBinary } from '../rig/servers/debian.ts';

/** The rules of docs/alerts.yml, evaluated by Prometheus: `promtool test rules`. */

const file = join(root, 'docs/alerts.yml');
interface Rule {
  alert: string;
  labels: object;
  annotations: object;
}
const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** Samples of five hours, one a minute; at the end the alert fires or does not. */
const MINUTES = 300;
const EVALUATED_AT = '5h';
const always = (value: number) => `${value}x${MINUTES}`;
const growingBy = (value: number) => `0+${value}x${MINUTES}`;
const inTurn = (...values: number[]) => `${values.join(' ')} `.repeat(MINUTES / values.length).trimEnd();

type Series = Record<string, string>;
interface Case {
  what: string;
  series: Series;
  /** Labels of the alert besides job and severity; undefined: it does not fire. */
  fires?: Record<string, string>;
}

const instance = { instance: 'a' };
const count = 'http_server_request_duration_seconds_count';
const bucket = 'http_server_request_duration_seconds_bucket';
/** Of a hundred a minute, this many last at most `limit`, and all at most ten times that. */
const histogram = (name: string, limit: number, below: number, labels = '') => ({
  [`${name}{${labels}le="${limit}"}`]: growingBy(below),
  [`${name}{${labels}le="${limit * 10}"}`]: growingBy(100),
  [`${name}{${labels}le="+Inf"}`]: growingBy(100),
});
const mails = ({ age, pending, sent }: Record<'age' | 'pending' | 'sent', string>) => ({
  account_outbox_oldest_age_seconds: age,
  account_outbox_pending_mails: pending,
  'account_mail_attempts_total{outcome="sent"}': sent,
});
const logins = (method: string, outcomes: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(outcomes).map(([outcome, aMinute]) => [
      `account_logins_total{method="${method}",outcome="${outcome}"}`,
      growingBy(aMinute),
    ]),
  );

const cases: Record<string, Case[]> = {
  AccountServiceDown: [
    {
      what: 'one of two is away',
      series: { up: always(0), 'account_build_info{instance="b"}': always(1) },
      fires: instance,
    },
    { what: 'all are away', series: { up: always(1) }, fires: {} },
    { what: 'all is well', series: { up: always(1), account_build_info: always(1) } },
    { what: 'a restart', series: { up: `1x${MINUTES - 1} 0`, account_build_info: always(1) } },
  ],
  AccountServiceErrors: [
    {
      what: 'two in a hundred',
      series: {
        [`${count}{status="500",route="/a"}`]: growingBy(2),
        [`${count}{status="200",route="/a"}`]: growingBy(98),
      },
      fires: {},
    },
    {
      what: 'probes that say 503, and refusals',
      series: {
        [`${count}{status="503",route="/readyz"}`]: growingBy(50),
        [`${count}{status="429",route="/a"}`]: growingBy(50),
      },
    },
  ],
  AccountServiceSlow: [
    { what: 'slow reads', series: histogram(bucket, 0.5, 95, 'method="GET",route="/a",'), fires: {} },
    { what: 'quick reads', series: histogram(bucket, 0.5, 100, 'method="GET",route="/a",') },
    { what: 'slow logins', series: histogram(bucket, 0.5, 50, 'method="POST",route="/auth/login",') },
    { what: 'calls that wait for events', series: histogram(bucket, 0.5, 50, 'method="GET",route="/api/events",') },
  ],
  AccountDatabaseDown: [
    { what: 'no answer', series: { account_database_up: always(0) }, fires: instance },
    { what: 'answers', series: { account_database_up: always(1) } },
  ],
  AccountKeyValueStoreDown: [
    { what: 'no answer', series: { account_key_value_store_up: always(0) }, fires: instance },
    { what: 'answers', series: { account_key_value_store_up: always(1) } },
  ],
  AccountDatabaseConnectionsUsedUp: [
    { what: 'someone always waits', series: { account_database_waiting: always(1) }, fires: instance },
    { what: 'bursts', series: { account_database_waiting: inTurn(9, 9, 0) } },
  ],
  AccountPasswordQueueLong: [
    { what: 'one in ten waits', series: histogram('account_password_wait_seconds_bucket', 0.4, 90), fires: {} },
    { what: 'one in fifty waits', series: histogram('account_password_wait_seconds_bucket', 0.4, 98) },
  ],
  AccountImageQueueLong: [
    { what: 'one in ten waits', series: histogram('account_image_wait_seconds_bucket', 3, 90), fires: {} },
    { what: 'one in fifty waits', series: histogram('account_image_wait_seconds_bucket', 3, 98) },
  ],
  AccountMailsDelayed: [
    {
      what: 'several wait, none goes out',
      series: mails({ age: always(1200), pending: always(5), sent: always(7) }),
      fires: {},
    },
    {
      what: 'one waits for hours, none goes out',
      series: mails({ age: growingBy(60), pending: always(1), sent: always(7) }),
      fires: {},
    },
    {
      what: 'one greylisted recipient at a quiet time',
      series: mails({ age: inTurn(1800, 1900), pending: always(1), sent: always(7) }),
    },
    {
      what: 'one address that takes nothing beside others',
      series: mails({ age: growingBy(60), pending: always(9), sent: growingBy(1) }),
    },
  ],
  AccountMailsRefused: [
    {
      what: 'every second',
      series: {
        'account_mail_attempts_total{outcome="dead"}': growingBy(1),
        'account_mail_attempts_total{outcome="sent"}': growingBy(1),
      },
      fires: {},
    },
    {
      what: 'one in twenty',
      series: {
        'account_mail_attempts_total{outcome="dead"}': growingBy(1),
        'account_mail_attempts_total{outcome="sent"}': growingBy(20),
      },
    },
  ],
  AccountUploadsNotInspected: [
    { what: 'many', series: { account_uploads_due: always(150) }, fires: {} },
    { what: 'some', series: { account_uploads_due: always(50) } },
  ],
  AccountScannerDown: [
    { what: 'for an hour', series: { account_scanner_up: always(0) }, fires: {} },
    { what: 'up', series: { account_scanner_up: always(1) } },
  ],
  AccountUploadsRefusedByScanner: [
    { what: 'some', series: { 'account_upload_scans_total{outcome="unknown"}': growingBy(1) }, fires: {} },
    { what: 'others', series: { 'account_upload_scans_total{outcome="infected"}': growingBy(1) } },
  ],
  AccountRemovalsDelayed: [
    { what: 'for three hours', series: { account_removals_oldest_age_seconds: always(10_800) }, fires: {} },
    { what: 'for one', series: { account_removals_oldest_age_seconds: always(3600) } },
  ],
  AccountEventsDelayed: [
    { what: 'always', series: { account_events_lag_seconds: always(60) }, fires: {} },
    { what: 'now and then', series: { account_events_lag_seconds: inTurn(60, 0.1) } },
  ],
  AccountWebhookFailing: [
    {
      what: 'one of two fails for two hours',
      series: {
        'account_webhook_failing_seconds{webhook="a"}': always(7200),
        'account_webhook_failing_seconds{webhook="b"}': always(0),
      },
      fires: { webhook: 'a' },
    },
    { what: 'for a while', series: { 'account_webhook_failing_seconds{webhook="a"}': always(600) } },
    { what: 'old events, and no failure', series: { 'account_webhook_oldest_age_seconds{webhook="a"}': always(7200) } },
  ],
  AccountWebhookEventsGivenUp: [
    {
      what: 'one every half hour',
      series: { 'account_webhook_deliveries_total{outcome="failed"}': `0x${MINUTES - 30} 1x29` },
      fires: {},
    },
    {
      what: 'only retried',
      series: {
        'account_webhook_deliveries_total{outcome="failed"}': always(3),
        'account_webhook_deliveries_total{outcome="retried"}': growingBy(5),
        'account_webhook_deliveries_total{outcome="no_event"}': growingBy(1),
      },
    },
  ],
  AccountEventLoopDelayed: [
    { what: 'always', series: { nodejs_eventloop_lag_p99_seconds: always(0.3) }, fires: instance },
    { what: 'now and then', series: { nodejs_eventloop_lag_p99_seconds: inTurn(0.3, 0.01) } },
  ],
  AccountLoginsLimited: [
    { what: 'fifty a minute', series: logins('password', { limited: 50 }), fires: {} },
    { what: 'ten a minute', series: logins('password', { limited: 10 }) },
  ],
  AccountProviderLoginsFail: [
    { what: 'most', series: logins('google', { failed: 2, success: 1 }), fires: { method: 'google' } },
    { what: 'all, since the start', series: logins('google', { failed: 2, success: 0 }), fires: { method: 'google' } },
    { what: 'some', series: logins('google', { failed: 1, success: 5 }) },
    { what: 'wrong passwords', series: logins('password', { failed: 50, success: 1 }) },
  ],
  AccountBackgroundFailures: [
    {
      what: 'ten a minute',
      series: { 'account_background_failures_total{what="forget_sessions"}': growingBy(10) },
      fires: { what: 'forget_sessions' },
    },
    { what: 'one a minute', series: { 'account_background_failures_total{what="forget_sessions"}': growingBy(1) } },
    {
      what: 'an outage of ten minutes',
      series: { 'account_background_failures_total{what="count_limit"}': `0x${MINUTES - 60} 0+100x10 1000x50` },
    },
  ],
};

const binary = await requireBinary({ names: ['promtool'], debianPackage: 'prometheus' });
const promtool = (...args: string[]): string => execFileSync(binary, args, { encoding: 'utf8', stdio: 'pipe' });

test('Prometheus takes the file', () => {
  expect(promtool('check', 'rules', file)).toContain(`SUCCESS: ${rules.length} rules found`);
});

test('each alert has cases that fire and cases that do not', () => {
  expect(Object.keys(cases).sort()).toEqual(rules.map(({ alert }) => alert).sort());
  for (const [alert, list] of Object.entries(cases))
    expect([alert, new Set(list.map(({ fires }) => fires !== undefined))]).toEqual([alert, new Set([true, false])]);
});

/** A series with the labels that a scrape adds. */
const scraped = (name: string): string => {
  const [, metric, labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? [];
  const own = labels.includes('instance=') ? '' : ',instance="a"';
  return `${metric}{job="account-service"${own}${labels && `,${labels}`}}`;
};

test.each(rules)('$alert', (rule) => {
  const { alert, labels, annotations } = rule;
  const directory = temporaryDirectory('alerts');
  // JSON is YAML. Without the other rules, which would take most of the time.
  writeFileSync(join(directory, 'rules.yml'), JSON.stringify({ groups: [{ name: 'one', rules: [rule] }] }));
  const document = {
    rule_files: ['rules.yml'],
    evaluation_interval: '1m',
    tests: cases[alert]?.map(({ what, series, fires }) => ({
      name: what,
      interval: '1m',
      input_series: Object.entries(series).map(([name, values]) => ({ series: scraped(name), values })),
      alert_rule_test: [
        {
          eval_time: EVALUATED_AT,
          alertname: alert,
          exp_alerts: fires
            ? [{ exp_labels: { job: 'account-service', ...labels, ...fires }, exp_annotations: annotations }]
            : [],
        },
      ],
    })),
  };
  const path = join(directory, 'cases.yml');
  writeFileSync(path, JSON.stringify(document));
  expect(promtool('test', 'rules', path)).toContain('SUCCESS');
});
