import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { callerOf } from '../contract/rig/callers.ts';
import { administrator, onStack } from '../contract/rig/scenario.ts';
import { metricsOnFreePort, type Sample } from '../rig/observe/metrics.ts';
import { startHttpScanner } from '../rig/servers/scanner.ts';

const docs = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8');

interface Rule {
  alert: string;
  expr: string;
  for: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
}
interface Panel {
  type: string;
  title: string;
  datasource?: { uid: string };
  targets?: { expr: string }[];
}
const { groups } = parse(docs('alerts.yml')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(docs('grafana-dashboard.json')) as {
  panels: Panel[];
  templating: { list: { name: string; query: string }[] };
};
const charts = dashboard.panels.filter(({ type }) => type !== 'row');

const expressions: [where: string, expression: string][] = [
  ...rules.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...charts.flatMap(({ title, targets = [] }) => targets.map(({ expr }): [string, string] => [title, expr])),
];

/** The series in an expression: names and required labels. */
function selectorsIn(expression: string): { name: string; labels: string[] }[] {
  // What Grafana inserts there.
  const text = expression.replaceAll('$__rate_interval', '5m');
  const selectors: { name: string; labels: string[] }[] = [];
  let isMatching = false;
  parser.parse(text).iterate({
    enter({ type, from, to }) {
      if (type.isError) throw new Error(`no PromQL at ${from}: ${text}`);
      if (type.name === 'VectorSelector') selectors.push({ name: '', labels: [] });
      if (type.name === 'LabelMatchers') isMatching = true;
      const current = selectors.at(-1);
      if (type.name === 'Identifier' && current) current.name = text.slice(from, to);
      // Others are those of `by (…)`.
      if (type.name === 'LabelName' && isMatching) current?.labels.push(text.slice(from, to));
    },
    leave({ type }) {
      if (type.name === 'LabelMatchers') isMatching = false;
    },
  });
  return selectors;
}

/** Prometheus' own series about a scrape. */
const ofTheScrape = { names: ['up'], labels: ['job', 'instance'] };

const metrics = await metricsOnFreePort();
/** Some metrics exist only with one. */
const scanner = await startHttpScanner();
afterAll(() => scanner.stop());

describe('every metric in a query exists', () => {
  onStack(
    'real',
    (stack) => {
      let samples: Sample[];
      beforeAll(async () => {
        const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
        const { session } = await administrator(scenario);
        // Some metrics have a series for each webhook.
        const webhook = { url: 'https://hooks.example.com/', types: ['*'] };
        expect((await scenario.call('webhooks.create', webhook, { session })).status).toBe(201);
        await fetch(`${stack().url}/api/health`);
        samples = await metrics.scrape();
      });

      test.each(expressions)('%s: %s', (_where, expression) => {
        const selectors = selectorsIn(expression);
        expect(selectors.length).toBeGreaterThan(0);
        for (const { name, labels } of selectors) {
          const own = labels.filter((label) => !ofTheScrape.labels.includes(label));
          const found = samples.filter((sample) => sample.name === name);
          if (!ofTheScrape.names.includes(name)) expect([name, found.length]).not.toEqual([name, 0]);
          expect([name, own.filter((label) => found.some((sample) => !(label in sample.labels)))]).toEqual([name, []]);
        }
      });
    },
    { env: { METRICS_PORT: String(metrics.port), SCAN_URL: scanner.url } },
  );
});

test('each alert has a duration, a severity and an instruction', () => {
  expect(rules.length).toBeGreaterThan(10);
  for (const { alert, for: duration, labels, annotations } of rules) {
    expect([alert, duration]).toEqual([alert, expect.stringMatching(/^\d+m$/)]);
    expect([alert, labels]).toEqual([alert, { severity: expect.stringMatching(/^(?:warning|critical)$/) }]);
    expect([alert, annotations]).toEqual([
      alert,
      { summary: expect.stringMatching(/\w{3}/), runbook: expect.stringMatching(/\w{3}.*\./) },
    ]);
  }
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

test('the dashboard uses the data source that its user selects', () => {
  const [datasource] = dashboard.templating.list;
  expect(datasource).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
  for (const { title, datasource } of charts) expect([title, datasource?.uid]).toEqual([title, `\${datasource}`]);
});
