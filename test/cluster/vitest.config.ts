import { defineConfig } from 'vitest/config';

/** `npm run test:cluster`: a separate project with parts of its own, sized for a small machine. */
export default defineConfig({
  test: {
    name: 'cluster',
    include: ['test/cluster/**/*.test.ts'],
    reporters: ['verbose', './test/rig/reporter.ts'],
    pool: 'forks',
    // Sequentially.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
