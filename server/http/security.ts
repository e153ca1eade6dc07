import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';
import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import { isLoopback } from '../loopback.ts';

/** The headers of interface.md section 5, the same on every response. */
export const securityHeaders = ({ apiHost }: Pick<Config, 'apiHost'>): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': [
    "default-src 'self'",
    "script-src 'self' 'unsafe-inline'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: https:",
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

/** More than any request of ours or of a provider has. The parsers take quadratic time. */
const MAX_PARAMETERS = 100;

/** RFC 9112 section 3.2: a request without one valid Host, or with a target that is no address, is malformed. */
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

/** Whether an origin is one of ours. */
const originRule =
  ({ origins, acceptsLoopbackOrigins }: Pick<Config, 'origins' | 'acceptsLoopbackOrigins'>) =>
  (origin: string): boolean =>
    origins.has(origin) || (acceptsLoopbackOrigins && isLoopbackOrigin(origin));

/** A development server on this machine has a port of its own; a server at a standard port is not one. */
function isLoopbackOrigin(origin: string): boolean {
  const url = URL.parse(origin);
  return url?.origin === origin && /^https?:$/.test(url.protocol) && url.port !== '' && isLoopback(url.hostname);
}

/**
 * No page of another site can make a browser change anything here, logged in or not: a request that is not a read must
 * come from one of our origins, or from a client that is no browser (interface.md section 5.9; OWASP CSRF Prevention
 * Cheat Sheet).
 */
export function originCheck(config: Pick<Config, 'origins' | 'acceptsLoopbackOrigins'>): Middleware {
  const isOurOrigin = originRule(config);
  return (ctx, next) => {
    if (readsOnly.has(ctx.method)) return next();
    const origin = ctx.get('Origin');
    const site = ctx.get('Sec-Fetch-Site');
    const isOurs = origin ? isOurOrigin(origin) : site !== 'cross-site' && site !== 'same-site';
    if (!isOurs) throw new ServiceError('ORIGIN_MISMATCH');
    return next();
  };
}

/** Browsers of our further front ends may read the answers, and send the cookie along. */
export function crossOrigin(config: Pick<Config, 'origins' | 'acceptsLoopbackOrigins'>): Middleware {
  const isOurOrigin = originRule(config);
  return cors({
    origin: (ctx) => (isOurOrigin(ctx.get('Origin')) ? ctx.get('Origin') : ''),
    credentials: true,
    allowMethods: ['GET', 'POST', 'PUT', 'DELETE'],
    exposeHeaders: ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'X-Request-Id'],
    maxAge: 600,
  });
}
