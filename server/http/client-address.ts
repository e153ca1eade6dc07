import { isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Middleware } from 'koa';
import type { Log } from '../log.ts';

/**
 * The client's address: the socket's, or with `trustedProxies` proxies in front the entry of X-Forwarded-For that the
 * outermost of them wrote, counted from the right: a client can write the entries further left itself. `::ffff:1.2.3.4`
 * is `1.2.3.4`.
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | undefined,
  trustedProxies: number,
): string {
  const entries = forwardedFor ? forwardedFor.split(',') : [];
  const entry = trustedProxies > 0 ? entries.at(-Math.min(trustedProxies, entries.length)) : undefined;
  const forwarded = entry && normalized(withoutPort(entry.trim().slice(0, MAX_ENTRY)));
  return forwarded || normalized(socketAddress ?? '') || 'unknown';
}

/** Undefined for a text that is no address. */
function normalized(text: string): string | undefined {
  // Most are, and the library takes longer than a whole read of the store.
  if (isIPv4(text)) return text;
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : undefined;
}

/** Enough for an IPv6 address with its zone, brackets and port. */
const MAX_ENTRY = 100;

/** Some proxies add the port from which the client came. */
const withoutPort = (entry: string): string =>
  /^\[(.+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;

/** Warns once of a proxy that the configuration does not count. */
export function proxyWarning(log: Pick<Log, 'warn'>): Middleware {
  let hasWarned = false;
  return (ctx, next) => {
    if (!hasWarned && ctx.get('X-Forwarded-For') !== '') {
      hasWarned = true;
      log.warn(
        'X-Forwarded-For came while TRUST_PROXY is 0: the clients behind a proxy share its address, and so each limit',
      );
    }
    return next();
  };
}
