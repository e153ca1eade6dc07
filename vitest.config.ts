import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/rig/longest-first.ts';

const common = {
  pool: 'forks' as const,
  testTimeout: 60_000,
  hookTimeout: 60_000,
};
// The default reporter prints the seed; `vitest --sequence.seed=N` repeats an order.
const shuffle = { files: false, tests: true };
const faults = ['test/faults/**/*.test.ts'];
/** With a configuration of their own. */
const apart = ['test/cluster/**', 'test/image/**'];
// The bench's packages bring tests of their own.
const foreign = ['test/bench/node_modules/**'];

export default defineConfig({
  test: {
    // Here, not in the projects: one MySQL and one Redis for both.
    globalSetup: 'test/rig/global-setup.ts',
    reporters: ['default', './test/rig/reporter.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...common,
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: [...faults, ...apart, ...foreign],
          // More than cores: many tests wait, for a time-out or a process.
          maxWorkers: 3,
          sequence: { shuffle, groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: 'faults',
          include: faults,
          // Some of them measure: at most as many as a small machine has cores.
          maxWorkers: 2,
          // After the others, not beside them.
          sequence: { shuffle, groupOrder: 1 },
        },
      },
    ],
  },
});
