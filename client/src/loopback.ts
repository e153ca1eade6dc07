/** Names of this machine, as `URL.hostname` spells them. Browsers treat it as secure, also over http. */
export const isLoopback = (hostname: string): boolean =>
  /^(?:(?:.*\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
