import ipaddr from 'ipaddr.js';

/** Leading bits of an IPv6 address that one customer is given: whoever has one address has them all. */
const IPV6_PREFIX_BITS = 64;

/**
 * Who is asking, as limits count it: the socket's address, or with `trustedProxies` proxies in front the entry of
 * X-Forwarded-For that the outermost of them wrote, counted from the right, for anybody can write the ones further left.
 * `::ffff:1.2.3.4` is `1.2.3.4`; an IPv6 /64 is one address.
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | undefined,
  trustedProxies: number,
): string {
  const entries = forwardedFor ? forwardedFor.split(',') : [];
  const entry = trustedProxies > 0 ? entries.at(-Math.min(trustedProxies, entries.length)) : undefined;
  const forwarded = entry === undefined ? '' : withoutPort(entry.trim().slice(0, MAX_ENTRY));
  const address = ipaddr.isValid(forwarded) ? forwarded : (socketAddress ?? '');
  return ipaddr.isValid(address) ? grouped(address) : 'unknown';
}

/** An IPv6 address with its zone, brackets and port. */
const MAX_ENTRY = 100;

/** Some proxies add the port from which the client came. */
const withoutPort = (entry: string): string =>
  /^\[(.+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;

function grouped(address: string): string {
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const bytes = parsed.toByteArray().fill(0, IPV6_PREFIX_BITS / 8);
  return `${ipaddr.fromByteArray(bytes).toString()}/${IPV6_PREFIX_BITS}`;
}
