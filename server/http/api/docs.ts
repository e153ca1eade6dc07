import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import Router from '@koa/router';
import type { Config } from '../../config/index.ts';
import { lazy } from '../../lib/lazy.ts';
import { memoryFile } from '../web/memory-file.ts';
import type { ParameterLists } from './rest.ts';

/**
 * Serves /openapi.json and /docs, the page that shows it and sends calls. All files come from this service; each is
 * created or read at its first request.
 */
export function docs(config: Pick<Config, 'appUrl' | 'publicUsers' | 'profileFields'>, lists: ParameterLists): Router {
  const document = async () => {
    const { openApiDocument } = await import('./openapi.ts');
    return `${JSON.stringify(openApiDocument(config, lists))}\n`;
  };
  const files = {
    '/openapi.json': lazy(async () => ownFile('json', await document())),
    '/docs': lazy(async () => ownFile('html', page)),
    '/docs/swagger-ui.css': lazy(() => swaggerUi('swagger-ui.css')),
    '/docs/swagger-ui-bundle.js': lazy(() => swaggerUi('swagger-ui-bundle.js')),
  };
  const router = new Router();
  for (const [path, file] of Object.entries(files)) {
    router.get(path, async (ctx) => {
      ctx.state['route'] = path;
      const send = await file();
      await send(ctx);
    });
  }
  return router;
}

const ownFile = (type: string, content: string) =>
  memoryFile({ type, content: Buffer.from(content), cacheControl: 'no-store' });

/** A file of Swagger UI, straight from its package. Its URL does not change with its content. */
const swaggerUi = async (asset: string) =>
  memoryFile({
    type: extname(asset),
    content: await readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${asset}`))),
    cacheControl: 'public, max-age=86400',
  });

// Calls go to the origin of the page, so they send its session cookie. The buttons to enter a cookie are left out: a
// page cannot set that header.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Account service: API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<style>
body { margin: 0; }
#hint { max-width: 1460px; margin: 0 auto; padding: 1rem 20px 0; box-sizing: border-box; font: 16px/1.5 system-ui, sans-serif; }
</style>
</head>
<body>
<p id="hint">Run <b>POST /auth/login</b> below, and the browser sends the session cookie with every further call.</p>
<div id="docs"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script>
const none = () => () => null;
fetch('/openapi.json')
  .then((response) => response.json())
  .then((document) =>
    SwaggerUIBundle({
      spec: { ...document, servers: [{ url: location.origin }] },
      dom_id: '#docs',
      deepLinking: true,
      tryItOutEnabled: true,
      displayRequestDuration: true,
      validatorUrl: null,
      plugins: [{ wrapComponents: { authorizeBtn: none, authorizeOperationBtn: none } }],
    }),
  );
</script>
</body>
</html>
`;
