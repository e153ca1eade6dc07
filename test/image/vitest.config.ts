import { defineConfig } from 'vitest/config';

/** `npm run test:image`: separate, because it needs root on Debian and the registry. */
export default defineConfig({
  test: {
    include: ['test/image/*.test.ts'],
    globalSetup: 'test/rig/global-setup.ts',
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 600_000,
  },
});
