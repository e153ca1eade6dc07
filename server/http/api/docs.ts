import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import Router from '@koa/router';
import type { Accounts } from '../../accounts/index.ts';
import type { Config } from '../../config/index.ts';
import { lazy } from '../../lazy.ts';
import { memoryFile } from '../web/memory-file.ts';

/**
 * /openapi.json, and /docs, which shows it and lets users log in and try each call. All of it comes from this service, each
 * file made or read when it is first asked for.
 */
export function docs(
  config: Pick<Config, 'appUrl' | 'publicUsers'>,
  accounts: Pick<Accounts, 'identityProviders'>,
): Router {
  const document = async () => {
    const { openApiDocument } = await import('./openapi.ts');
    return JSON.stringify(openApiDocument(config, accounts));
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

/** A part of Swagger UI that the page loads, straight from its package. Its address stays when its content changes. */
const swaggerUi = async (asset: string) =>
  memoryFile({
    type: extname(asset),
    content: await readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${asset}`))),
    cacheControl: 'public, max-age=86400',
  });

// Calls go to the origin of the page itself, so that they send the cookie of a login made here. The buttons to enter a
// cookie by hand are left out: a page cannot send one that way.
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
