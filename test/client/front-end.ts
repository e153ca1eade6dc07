import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { build } from 'vite';

/** A front end of its own on another origin: one page, with the project's compiled module bundled as front ends do. */
export async function startFrontEnd(directory: string, entry: string, port: number) {
  await build({
    root: directory,
    configFile: false,
    logLevel: 'error',
    build: { lib: { entry: join(directory, entry), formats: ['es'], fileName: () => 'page.js' }, outDir: 'www' },
  });
  const script = await readFile(join(directory, 'www/page.js'));
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
