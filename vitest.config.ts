import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/rig/longest-first.ts';

const { CI } = process.env;

const common = {
  pool: 'forks' as const,
  // Against hangs only, also of the longest test: on a loaded machine everything takes several times as long.
  testTimeout: 300_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 60_000, interval: 20 } },
};
/** In CI other work may load the machine. The reporter names each test that needed its second try. */
const retry = CI === undefined ? 0 : 1;
const severe = {
  // The services are processes of their own; the files share the compiled /openapi.json.
  isolate: false,
  testTimeout: 900_000,
  // Only what took too long is tried again: one lost change in 500 rounds is one too many.
  retry: {
    count: retry,
    condition: /not within|timed out|to be (?:less|greater) than|expected 503 to be|fetch failed|ECONN|socket/i,
  },
};
// The default reporter prints the seed; `vitest --sequence.seed=N` repeats an order.
const shuffle = { files: false, tests: true };
/** More than cores: many tests wait, for a time-out or a process. */
const maxWorkers = 4;
const units = ['test/unit/**/*.test.ts', 'test/repository/**/*.test.ts'];
const faults = ['test/faults/**/*.test.ts'];
/** Those that repeat a race or a crash hundreds of times, wait for minutes or do what an operator does: not in CI. */
const long = [
  'test/faults/{administrators,changes,crashes,database-deaths,floods,guessing,large-files}.test.ts',
  'test/faults/{migrations,procedures,refreshes,removals,rounds,snapshots,uploads,webhooks}.test.ts',
];
/** No call may fail while instances start: other tests would take the cores, and Redis then answers too late. */
const quiet = ['test/faults/{rotation,upgrade}.test.ts'];
/** Browsers, commands, packages: each test starts processes. */
const system = [
  'test/operations/**/*.test.ts',
  'test/pages/**/*.test.ts',
  'test/client/{editor,examples,kit,package}.test.ts',
];
/** The client as it is now: units need no build of it. */
const client = JSON.parse(readFileSync('client/package.json', 'utf8')) as {
  exports: Record<string, { default?: string }>;
};
const clientSource = Object.entries(client.exports).map(([path, { default: built }]) => ({
  find: new RegExp(`^account-client${path.slice(1)}$`),
  replacement: join(import.meta.dirname, 'client', built?.replace('./dist/', 'src/').replace(/\.js$/, '.ts') ?? path),
}));
/** With a configuration of their own. */
const apart = ['test/cluster/**', 'test/image/**'];
/** A worker loads the service and the rig once, and its stacks are services in the worker. */
const oneProcess = { isolate: false, env: { SERVICE_IN_PROCESS: 'on' } };
// The bench's packages bring tests of their own.
const foreign = ['test/bench/node_modules/**'];

export default defineConfig({
  test: {
    // Here, not in the projects: one MySQL and one Redis for all, and none where only units run.
    globalSetup: 'test/rig/global-setup.ts',
    reporters: ['default', './test/rig/reporter.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        // No servers, no built client: one file in two seconds.
        resolve: { alias: clientSource },
        test: {
          ...common,
          name: 'unit',
          include: units,
          // A file must leave its process as it was.
          isolate: false,
          maxWorkers,
          sequence: { shuffle, groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          ...oneProcess,
          name: 'service',
          retry,
          include: ['test/**/*.test.ts'],
          exclude: [...units, ...system, ...faults, ...apart, ...foreign],
          maxWorkers,
          sequence: { shuffle, groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          ...oneProcess,
          name: 'system',
          retry,
          include: system,
          // Browsers compute while they wait: with 4 workers a file took twice as long.
          maxWorkers: 3,
          sequence: { shuffle, groupOrder: 1 },
        },
      },
      {
        test: {
          ...common,
          ...severe,
          name: 'faults',
          include: faults,
          exclude: [...long, ...quiet],
          // They wait for deadlines more than they compute.
          maxWorkers,
          // After the others, not beside them.
          sequence: { shuffle, groupOrder: 2 },
        },
      },
      {
        test: {
          ...common,
          ...severe,
          name: 'faults-long',
          include: long,
          maxWorkers: 3,
          sequence: { shuffle, groupOrder: 3 },
        },
      },
      {
        test: {
          ...common,
          ...severe,
          name: 'faults-alone',
          include: quiet,
          maxWorkers: 1,
          sequence: { shuffle, groupOrder: 4 },
        },
      },
    ],
  },
});
