import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Router from '@koa/router';
import type { Accounts } from '../../accounts/index.ts';
import type { Config } from '../../config/index.ts';
import { openApiDocument } from './openapi.ts';

/** The parts of Swagger UI that the page loads, straight from its package. */
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js'];
const DAY_SECONDS = 24 * 60 * 60;

/** In memory once, from the first request on: a client may ask for it a thousand times and take none. */
function onceRead(asset: string): () => Buffer {
  let content: Buffer | undefined;
  return () => {
    content ??= readFileSync(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${asset}`)));
    return content;
  };
}

/**
 * /openapi.json, and /docs, which shows it and lets users log in and try each call. All of it comes from this service.
 */
export function docs(config: Pick<Config, 'appUrl'>, accounts: Pick<Accounts, 'identityProviders'>): Router {
  const document = Buffer.from(JSON.stringify(openApiDocument(config, accounts)));
  const router = new Router()
    .get('/openapi.json', (ctx) => {
      ctx.state['route'] = ctx.path;
      ctx.type = 'json';
      ctx.body = document;
    })
    .get('/docs', (ctx) => {
      ctx.state['route'] = ctx.path;
      ctx.type = 'html';
      ctx.body = page;
    });
  for (const asset of assets) {
    const content = onceRead(asset);
    router.get(`/docs/${asset}`, (ctx) => {
      ctx.state['route'] = ctx.path;
      ctx.set('Cache-Control', `public, max-age=${DAY_SECONDS}`);
      ctx.type = asset.slice(asset.lastIndexOf('.'));
      ctx.body = content();
    });
  }
  return router;
}

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
