/** @type {Partial<import('@stryker-mutator/api/core').StrykerOptions>} */
export default {
  mutate: ['server/accounts/**/*.ts', 'server/uploads/**/*.ts', 'server/http/api/rest.ts'],
  plugins: ['./test/mutation/plugins.ts'],
  testRunner: 'vitest-kept',
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // Code that runs at load time would need a process for each mutant with all tests: see kept-thread.ts.
  ignoreStatic: true,
  ignorers: ['log'],
  // More than cores: tests mostly wait. A process that judges takes 2 GB.
  concurrency: 4,
  maxTestRunnerReuse: 400,
  // All tests in one process: it grows to 9 GB, and a heap of 8 GB ended the first run.
  testRunnerNodeArgs: ['--max-old-space-size=15000'],
  timeoutMS: 20_000,
  // All tests once, on a machine that may be busy; the default is five.
  dryRunTimeoutMinutes: 30,
  incremental: true,
  incrementalFile: 'node_modules/.cache/stryker/incremental.json',
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  jsonReporter: { fileName: 'node_modules/.cache/stryker/mutation.json' },
  htmlReporter: { fileName: 'node_modules/.cache/stryker/mutation.html' },
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 95, low: 90, break: 85 },
  // None: types are stripped, and TypeScript 7 has no API with which Stryker could rewrite it.
  tsconfigFile: 'none',
  ignorePatterns: ['.data', '.stryker-tmp'],
  cleanTempDir: 'always',
};
