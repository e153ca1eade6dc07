/** RFC 6761 section 6.3 and the loopback addresses: a request to one of these names does not leave the machine. */
const loopbackName = /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Takes a name as `URL.hostname` spells it: lower case, an IPv6 address in brackets. */
export const isLoopback = (hostname: string): boolean => loopbackName.test(hostname);

/** True for plain http to another machine: it can be read and changed in transit. */
export function isInTheClear(address: string): boolean {
  const url = URL.parse(address);
  return url?.protocol === 'http:' && !isLoopback(url.hostname);
}
