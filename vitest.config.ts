import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/rig/global-setup.ts',
    pool: 'forks',
    // More than cores: many tests wait, for a time-out or a process.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The default reporter prints the seed; `vitest --sequence.seed=N` repeats an order.
    sequence: { shuffle: { files: true, tests: true } },
    reporters: ['default', './test/rig/reporter.ts'],
  },
});
