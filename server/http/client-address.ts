import { isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Middleware } from 'koa';
import type { Log } from '../telemetry/log.ts';

/**
 * The client's address. With `trustedProxies` proxies, the entry of X-Forwarded-For that the outermost one wrote,
 * counted from the right: a client can forge entries further left. `::ffff:1.2.3.4` becomes `1.2.3.4`.
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

/** Undefined if the text is not an IP address. */
function normalized(text: string): string | undefined {
  // Fast path: most entries are plain IPv4 addresses, and the library takes longer than a read of the store.
  if (isIPv4(text)) return text;
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : undefined;
}

/** Enough for an IPv6 address with zone, brackets and port. */
const MAX_ENTRY = 100;

/** Some proxies append the client's port. */
const withoutPort = (entry: string): string =>
  /^\[(.+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;

/** Warns once if a proxy forwards requests but TRUST_PROXY is 0. */
export function proxyWarning(log: Pick<Log, 'warn'>): Middleware {
  let hasWarned = false;
  return (ctx, next) => {
    if (!hasWarned && ctx.get('X-Forwarded-For') !== '') {
      hasWarned = true;
      log.warn(
        'received X-Forwarded-For while TRUST_PROXY is 0: clients behind a proxy share its address, and so each limit',
      );
    }
    return next();
  };
}
