import { defineConfig } from 'vite';

/** The account pages: one shell, one script and one style sheet, named by their content. Built by `npm ci`. */
export default defineConfig({
  root: import.meta.dirname,
  // Addresses from the root: one shell serves every page.
  base: '/',
  publicDir: false,
  // Read from here, not from the directory in which npm was called.
  envDir: false,
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  logLevel: 'warn',
});
