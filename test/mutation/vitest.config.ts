import { defineConfig } from 'vitest/config';

/**
 * The tests that may kill mutants, all in one process and thread. A test that asks for what a mutation run cannot give
 * (`rig/mutation-run.ts`) is skipped, with that reason; a file is left out if its subject is
 * - time, memory or CPU: measured beside other mutants, they say nothing;
 * - code that is not mutated.
 */
const measuring = [
  'contract/networks',
  'contract/fuzz',
  'unit/bodies',
  'unit/form-limits',
  'unit/images',
  'unit/untrusted-text',
];
const elsewhere = [
  'contract/dev-tools',
  'contract/document',
  'contract/identity-provider',
  'contract/internal-errors',
  'contract/login-starts',
  'contract/own-names',
  'contract/requests',
  'contract/several-providers',
  'unit/client-address',
  'unit/config',
  'unit/deadlock',
  'unit/embedded-parts',
  'unit/history',
  'unit/identity-provider-config',
  'unit/migrations',
  'unit/packages',
  'unit/pages',
  'unit/pipelining',
  'unit/search-migration',
  'unit/secret',
  'unit/smtp',
  'unit/upload-usage-migration',
  'uploads/browser',
];

export default defineConfig({
  test: {
    include: ['contract', 'uploads', 'unit'].map((folder) => `test/${folder}/**/*.test.ts`),
    exclude: [...measuring, ...elsewhere].map((name) => `test/${name}.test.ts`),
    env: { MUTATION_RUN: 'on' },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    isolate: false,
  },
});
