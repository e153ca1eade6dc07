import { isLoopback } from './loopback.ts';

/**
 * Says in the console that cookies are not sent: for a browser, the names of this machine are different sites. There is no
 * error to see, because the service answers as to a user who is logged out.
 */
export function warnOfOtherSite(url: string): void {
  const page = globalThis.location;
  if (!page?.hostname) return;
  const { hostname } = new URL(url, page.href);
  if (hostname === page.hostname || !isLoopback(hostname) || !isLoopback(page.hostname)) return;
  if (hostname.endsWith('localhost') && page.hostname.endsWith('localhost')) return;
  // biome-ignore lint/suspicious/noConsole: for developers, who see nothing else.
  console.warn(
    `account-client: users stay logged out, because for browsers ${page.hostname} and ${hostname} are two sites. Open the page at ${page.protocol}//${hostname}${page.port && `:${page.port}`}`,
  );
}
