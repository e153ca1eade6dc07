import { statSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The tests that may kill mutants, all in one process and thread. A test that asks for what a mutation run cannot give
 * (`rig/mutation-run.ts`) is skipped, with that reason; a file is left out if its subject is
 * - time, memory or CPU: measured beside other mutants, they say nothing;
 * - code that is not mutated.
 */
const measuring = ['contract/networks', 'unit/form-limits', 'unit/untrusted-text'];
const elsewhere = [
  'contract/dev-tools',
  'contract/document',
  'contract/internal-errors',
  'contract/own-names',
  'contract/requests',
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

/** The first failure ends a run: single modules first, and then the smaller of the files. */
class CheapestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const cost = ({ moduleId }: TestSpecification) => (moduleId.includes('/unit/') ? 0 : statSync(moduleId).size);
    return files.sort((a, b) => cost(a) - cost(b));
  }
}

export default defineConfig({
  test: {
    include: ['contract', 'uploads', 'unit'].map((folder) => `test/${folder}/**/*.test.ts`),
    exclude: [...measuring, ...elsewhere].map((name) => `test/${name}.test.ts`),
    env: { MUTATION_RUN: 'on' },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    isolate: false,
    sequence: { sequencer: CheapestFirst },
  },
});
