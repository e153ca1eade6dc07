import { statSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { mutatedFile, nearness } from './nearness.ts';

/**
 * The tests that may kill mutants, in one process and thread. A test that needs what a mutation run cannot provide
 * (`rig/mutation-run.ts`) is skipped with that reason. A file is omitted if it tests
 * - time, memory or CPU, which mean nothing beside other mutants;
 * - code that is not mutated;
 * - with servers that a hook of the whole file starts: Stryker takes a failed hook for a broken run.
 */
const measuring = [
  'unit/http/asked-language',
  'contract/http/networks',
  'unit/http/form-limits',
  'unit/users/untrusted-text',
];
const elsewhere = [
  'contract/http/dev-tools',
  'contract/http/document',
  'contract/http/internal-errors',
  'contract/http/own-names',
  'contract/http/requests',
  'contract/uploads/browser',
  'contract/uploads/upload-endpoint',
  'integration/parts/*',
  'integration/uploads/upload-usage-migration',
  'integration/users/search-migration',
  'unit/client/*',
  'unit/config/*',
  'unit/http/pages',
  'unit/parts/*',
  'unit/rig/*',
];
const onServers = ['integration/data/users-import', 'integration/request-costs', 'integration/rows-read'];

/** The first failure ends a run, so the nearest tests come first; among these the unit tests, then the smaller files. */
class NearestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const distance = ({ moduleId }: TestSpecification) => -nearness(moduleId, mutatedFile());
    const cost = ({ moduleId }: TestSpecification) =>
      /\/(?:unit|integration)\//.test(moduleId) ? 0 : statSync(moduleId).size;
    return files.sort((a, b) => distance(a) - distance(b) || cost(a) - cost(b));
  }
}

export default defineConfig({
  test: {
    include: ['contract', 'integration', 'unit'].map((folder) => `test/${folder}/**/*.test.ts`),
    exclude: [...measuring, ...elsewhere, ...onServers].map((name) => `test/${name}.test.ts`),
    env: { MUTATION_RUN: 'on' },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    isolate: false,
    sequence: { sequencer: NearestFirst },
  },
});
