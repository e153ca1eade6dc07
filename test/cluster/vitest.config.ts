import { defineConfig } from 'vitest/config';

/** `npm run test:cluster`: a project apart, whose parts are its own and take what a small machine has. */
export default defineConfig({
  test: {
    name: 'cluster',
    include: ['test/cluster/**/*.test.ts'],
    reporters: ['verbose', './test/rig/reporter.ts'],
    pool: 'forks',
    // One after the other.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
