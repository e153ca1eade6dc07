import type { Context } from 'koa';
import { escapeHtml } from '../lib/escape-html.ts';
import { type OurOrigins, originRule, parseAddress } from '../shared/origins.ts';

/**
 * Redirects. A browser that goes to a front end on another origin gets a page that redirects: `form-action` of the page
 * with the form that began the chain, ours or a provider's, allows no redirect to a third origin, and a navigation that
 * a page of ours begins carries the Strict session cookie.
 */
export function leadTo(ctx: Context, location: string, ours: OurOrigins): void {
  const target = parseAddress(location);
  const isElsewhere = target !== undefined && target.host !== ctx.host && originRule(ours)(target.origin);
  if (!isElsewhere || ctx.get('Sec-Fetch-Mode') !== 'navigate') {
    ctx.redirect(location);
    return;
  }
  ctx.status = 200;
  ctx.type = 'html';
  ctx.body = page(target);
}

/** Without a text: it needs no language. */
const page = ({ href, host }: URL) => `<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="0;url=${escapeHtml(href)}">
<link rel="icon" href="data:,">
<title>${escapeHtml(host)}</title>
<script>location.replace(${JSON.stringify(href).replace(/</g, '\\u003c')})</script>
</head>
<body><a href="${escapeHtml(href)}">${escapeHtml(host)}</a></body>
</html>
`;
