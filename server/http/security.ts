import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';
import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import { type OurOrigins, originRule, parseAddress } from '../shared/origins.ts';
import type { Log } from '../telemetry/log.ts';
import { hasCredential } from './authorization.ts';
import { foreignOriginWarning, nameOfOrigin } from './foreign-origins.ts';

/**
 * The headers of interface.md section 5, the same on every response. The documented policy allows https images; outside
 * production it also allows a storage over plain http.
 */
export const securityHeaders = ({
  apiHost,
  s3,
  production,
}: Pick<Config, 'apiHost' | 's3' | 'production'>): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': [
    "default-src 'self'",
    "script-src 'self' 'unsafe-inline'",
    "style-src 'self' 'unsafe-inline'",
    ["img-src 'self' data: https:", ...(production ? [] : plainOrigin(s3?.publicUrl))].join(' '),
    "font-src 'self'",
    `connect-src 'self' ${apiHost}`,
    "frame-ancestors 'none'",
    "base-uri 'self'",
    "form-action 'self'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'X-XSS-Protection': '1; mode=block',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'strict-origin-when-cross-origin',
  'Strict-Transport-Security': 'max-age=31536000; includeSubDomains; preload',
});

function plainOrigin(address = ''): string[] {
  const url = URL.parse(address);
  return url?.protocol === 'http:' ? [url.origin] : [];
}

/** Browsers send at most about 200 characters. The parsers take quadratic time. */
const MAX_ACCEPT = 500;

/** A longer Accept, Accept-Encoding or Accept-Language counts as missing. */
export const boundedAccept: Middleware = (ctx, next) => {
  for (const name of ['accept', 'accept-encoding', 'accept-language'] as const) {
    if ((ctx.headers[name]?.length ?? 0) > MAX_ACCEPT) delete ctx.headers[name];
  }
  return next();
};

/** More than any legitimate request has. The parsers take quadratic time. */
const MAX_PARAMETERS = 100;

/** RFC 9112 section 3.2: a request without exactly one valid Host, or with an invalid target, is malformed. */
export const requireTarget: Middleware = (ctx, next) => {
  const message = problemWith(ctx);
  if (message === undefined) return next();
  ctx.set('Connection', 'close');
  throw new ServiceError('VALIDATION_FAILED', { message });
};

function problemWith(ctx: Context): string | undefined {
  const { url } = ctx;
  const { httpVersion, rawHeaders } = ctx.req;
  const [host, ...more] = valuesOf(rawHeaders, 'host');
  if (host === undefined && httpVersion === '1.1') return 'The Host header is missing';
  if (more.length > 0 || (host !== undefined && !isHost(host))) return 'The Host header is not valid';
  if (!url.startsWith('/') && url !== '*' && !URL.canParse(url)) return 'The request target is not an address';
  if (ctx.querystring.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS)
    return 'The query has too many parameters';
  return undefined;
}

/** Every value of a header that Node reduces to its first. */
const valuesOf = (rawHeaders: string[], wanted: string): string[] =>
  rawHeaders.filter((_, i) => {
    const name = rawHeaders[i - 1];
    return i % 2 === 1 && name?.length === wanted.length && name.toLowerCase() === wanted;
  });

const isHost = (text: string): boolean =>
  /^(?:[\w.-]{1,255}|\[[\da-f:.]{2,45}\])(?::\d{0,5})?$/i.test(text) && URL.canParse(`http://${text}`);

const readsOnly = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * CSRF protection: a request that is not a read must come from an allowed origin, or from a client that is not a
 * browser (interface.md section 5.9; OWASP CSRF Prevention Cheat Sheet).
 */
export const originCheck =
  (config: OurOrigins): Middleware =>
  (ctx, next) => {
    // No page of another origin can send a credential in a header without the consent of CORS.
    const isSafe = readsOnly.has(ctx.method) || isFromOurPages(ctx, config) || hasCredential(ctx);
    if (!isSafe) throw new ServiceError('ORIGIN_MISMATCH');
    return next();
  };

/** True for requests from an allowed origin or from a client that is not a browser. */
function isFromOurPages(ctx: Context, config: OurOrigins): boolean {
  const origin = ctx.get('Origin');
  const site = ctx.get('Sec-Fetch-Site');
  return origin ? originRule(config)(origin) : site !== 'cross-site' && site !== 'same-site';
}

/**
 * True if the user navigated from a page of ours, or the client is not a browser. Mail links, bookmarks and other sites
 * lead here too; no page can forge Fetch Metadata or Referer.
 */
export function isAskedOnOurPages(ctx: Context, config: OurOrigins): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  if (site === 'same-origin') return true;
  const origin = ctx.get('Origin') || parseAddress(ctx.get('Referer'))?.origin;
  return origin ? originRule(config)(origin) : site === '';
}

/**
 * Whether a browser loads the address as a page: not in a frame, or as a part of a page (a picture, a call), which the
 * visitor of another site does not see. True for clients other than browsers.
 */
export function isPage(ctx: Context): boolean {
  const destination = ctx.get('Sec-Fetch-Dest');
  return destination === '' || destination === 'document';
}

/**
 * CORS: allowed front ends may read responses and send the cookie; other origins get a message that names
 * ALLOWED_ORIGINS.
 */
export function crossOrigin(config: OurOrigins, log: Pick<Log, 'warn'>): Middleware {
  const isOurOrigin = originRule(config);
  const warnOf = foreignOriginWarning(log);
  const allow = cors({
    origin: (ctx) => (isOurOrigin(ctx.get('Origin')) ? ctx.get('Origin') : ''),
    credentials: true,
    allowMethods: ['GET', 'POST', 'PUT', 'DELETE'],
    exposeHeaders: ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'X-Request-Id'],
    maxAge: 600,
  });
  return (ctx, next) => {
    const origin = ctx.get('Origin');
    if (origin === '' || isOurOrigin(origin)) return allow(ctx, next);
    const name = nameOfOrigin(origin);
    if (name) warnOf(name);
    const isPreflight = ctx.method === 'OPTIONS' && ctx.get('Access-Control-Request-Method') !== '';
    if (isPreflight) throw new ServiceError('ORIGIN_MISMATCH', name ? { message: refusalOf(name) } : {});
    return allow(ctx, next);
  };
}

const refusalOf = (origin: string) =>
  `Requests from ${origin} are not accepted: it is not named in the ALLOWED_ORIGINS of the service`;
