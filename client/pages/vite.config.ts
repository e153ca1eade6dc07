import { build, defineConfig } from 'vite';

/** The account pages: a shell, a script and a style sheet, named by their content. Built by `npm ci`. */
export default defineConfig(({ mode }) => ({
  root: import.meta.dirname,
  // Absolute URLs, because one shell serves every page.
  base: '/',
  publicDir: false,
  // Relative to this file, not to npm's working directory.
  envDir: false,
  build: {
    outDir: mode === 'design' ? 'dist/design' : 'dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // A worker loads dictionaries when it needs them.
  worker: { format: 'es' },
  logLevel: 'warn',
  // The pages once more, with that of all controls: a part of the same build would cost each login a script more.
  plugins:
    mode === 'design'
      ? []
      : [
          {
            name: 'design',
            async closeBundle() {
              await build({ configFile: import.meta.filename, mode: 'design' });
            },
          },
        ],
}));
