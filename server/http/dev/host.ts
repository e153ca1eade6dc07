import type { Middleware } from 'koa';
import type { Config } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import { isLoopback } from '../../shared/loopback.ts';
import { ownAddress } from './own-address.ts';

/**
 * Requires our Host for requests under /dev. Without it a page of another site could read all mails by DNS rebinding:
 * its name resolves to this machine, so the browser treats it as the same origin.
 */
export function devHost(config: Pick<Config, 'appUrl' | 'host' | 'port'>): Middleware {
  const ours = [config.appUrl, ownAddress(config)].map((url) => new URL(url).host);

  const isOurs = (host: string) => {
    // Only a name and a port: a Host has no other parts of a URL.
    const url = /^[^/?#@\\]+$/.test(host) ? URL.parse(`http://${host}`) : null;
    if (!url) return false;
    return ours.includes(url.host) || (isLoopback(url.hostname) && Number(url.port || 80) === config.port);
  };

  return (ctx, next) => {
    // The router's paths are case-insensitive too.
    if (!/^\/dev(?:\/|$)/i.test(ctx.path) || isOurs(ctx.get('Host'))) return next();
    throw new ServiceError('NOT_FOUND', { message: `This is served at ${config.appUrl} only` });
  };
}
