import type { Middleware } from 'koa';
import type { Config } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import { ownAddress } from './own-address.ts';

/**
 * Lets a request under /dev through only with a Host name of ours: a page of another site whose name resolves to this
 * machine (DNS rebinding) has our origin to its browser, and would read every mail here.
 */
export function devHost(config: Pick<Config, 'appUrl' | 'host' | 'port'>): Middleware {
  const ours = [config.appUrl, ownAddress(config)].map((url) => new URL(url).host);

  const isOurs = (host: string) => {
    // Nothing but a name and a port: a Host has none of the other parts of an address.
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
