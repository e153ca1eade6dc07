import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';

/** The compiled module, bundled like a front end. */
export async function bundle(directory: string, entry: string): Promise<string> {
  await build({
    root: directory,
    configFile: false,
    logLevel: 'error',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: { lib: { entry: join(directory, entry), formats: ['es'], fileName: () => 'page.js' }, outDir: 'www' },
  });
  return readFile(join(directory, 'www/page.js'), 'utf8');
}

/** The size of what a page loads for the compiled module, minified and compressed, without React and Vue. */
export async function sizeOf(directory: string, entry: string): Promise<number> {
  const built = await build({
    root: directory,
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      rollupOptions: {
        input: join(directory, entry),
        external: ['react', 'react/jsx-runtime', 'vue'],
        preserveEntrySignatures: 'strict',
      },
    },
  });
  const chunks = 'output' in built ? built.output : [];
  const code = chunks.map((chunk) => ('code' in chunk ? chunk.code : '')).join('');
  return gzipSync(code).length;
}

/** A front end on another origin: one page with the bundle. */
export async function startFrontEnd(directory: string, entry: string, port: number) {
  const script = await bundle(directory, entry);
  const server = createServer((request, response) => {
    const isScript = request.url === '/page.js';
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html');
    response.end(
      isScript ? script : '<!doctype html><title>A front end</title><script type="module" src="/page.js"></script>',
    );
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${port}`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
