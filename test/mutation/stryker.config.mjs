/** @type {Partial<import('@stryker-mutator/api/core').StrykerOptions>} */
export default {
  mutate: ['server/accounts/**/*.ts', 'server/uploads/**/*.ts', 'server/http/api/rest.ts'],
  plugins: ['./test/mutation/plugins.ts'],
  testRunner: 'vitest-kept',
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // What is computed when a module loads would need a process for each mutant, and all tests in it: kept-thread.ts.
  ignoreStatic: true,
  ignorers: ['log'],
  concurrency: 2,
  timeoutMS: 20_000,
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
