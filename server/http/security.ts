import cors from '@koa/cors';
import type { Middleware } from 'koa';
import type { Config } from '../config.ts';
import { ServiceError } from '../errors.ts';

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

/**
 * RFC 9112 section 3.2: without a Host, or with a target that is no address, it is no request. Node would refuse the first
 * by itself, but without our headers.
 */
export const requireTarget: Middleware = (ctx, next) => {
  const hasHost = ctx.req.httpVersion !== '1.1' || ctx.req.headers.host !== undefined;
  const hasTarget = ctx.url.startsWith('/') || ctx.url === '*' || URL.canParse(ctx.url);
  if (hasHost && hasTarget) return next();
  ctx.set('Connection', 'close');
  throw new ServiceError('VALIDATION_FAILED', {
    message: hasHost ? 'The request target is not an address' : 'The Host header is missing',
  });
};

const readsOnly = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * No page of another site makes a browser change anything here, logged in or not: whatever is not a read must come from one
 * of our origins, or from no browser at all (interface.md section 5.9; OWASP CSRF Prevention Cheat Sheet).
 */
export function originCheck({ origins }: Pick<Config, 'origins'>): Middleware {
  return (ctx, next) => {
    if (readsOnly.has(ctx.method)) return next();
    const origin = ctx.get('Origin');
    const site = ctx.get('Sec-Fetch-Site');
    const isOurs = origin ? origins.has(origin) : site !== 'cross-site' && site !== 'same-site';
    if (!isOurs) throw new ServiceError('ORIGIN_MISMATCH');
    return next();
  };
}

/** Browsers of our further front ends may read the answers, and send the cookie along. */
export const crossOrigin = ({ origins }: Pick<Config, 'origins'>): Middleware =>
  cors({
    origin: (ctx) => (origins.has(ctx.get('Origin')) ? ctx.get('Origin') : ''),
    credentials: true,
    allowMethods: ['GET', 'POST', 'PUT', 'DELETE'],
    exposeHeaders: ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'X-Request-Id'],
    maxAge: 600,
  });
