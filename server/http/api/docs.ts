import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import Router from '@koa/router';
import type { Accounts } from '../../accounts/index.ts';
import type { Config } from '../../config/index.ts';
import { memoryFile } from '../web/memory-file.ts';
import { openApiDocument } from './openapi.ts';

/**
 * /openapi.json, and /docs, which shows it and lets users log in and try each call. All of it comes from this service.
 */
export function docs(config: Pick<Config, 'appUrl'>, accounts: Pick<Accounts, 'identityProviders'>): Router {
  const document = JSON.stringify(openApiDocument(config, accounts));
  const files = {
    '/openapi.json': memoryFile({ type: 'json', content: Buffer.from(document), cacheControl: 'no-store' }),
    '/docs': memoryFile({ type: 'html', content: Buffer.from(page), cacheControl: 'no-store' }),
    '/docs/swagger-ui.css': swaggerUi('swagger-ui.css'),
    '/docs/swagger-ui-bundle.js': swaggerUi('swagger-ui-bundle.js'),
  };
  const router = new Router();
  for (const [path, file] of Object.entries(files)) {
    router.get(path, (ctx) => {
      ctx.state['route'] = path;
      return file(ctx);
    });
  }
  return router;
}

/** A part of Swagger UI that the page loads, straight from its package. Its address stays when its content changes. */
const swaggerUi = (asset: string) =>
  memoryFile({
    type: extname(asset),
    content: readFileSync(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${asset}`))),
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
