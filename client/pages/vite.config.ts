import { defineConfig } from 'vite';

/** The account pages: a shell, a script and a style sheet, named by their content. Built by `npm ci`. */
export default defineConfig({
  root: import.meta.dirname,
  // Absolute URLs, because one shell serves every page.
  base: '/',
  publicDir: false,
  // Relative to this file, not to npm's working directory.
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
