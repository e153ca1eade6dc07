import { isLoopback } from './loopback.ts';

/** The origins with browsers that may call the service. Shared with the account pages. */
export interface OurOrigins {
  /** The origins of APP_URL and ALLOWED_ORIGINS, as `URL.origin` spells them. */
  origins: ReadonlySet<string>;
  /** True if front ends on any port of this machine are allowed, such as Vite's 5173. */
  acceptsLoopbackOrigins: boolean;
}

/** Returns a function that tells whether an origin is allowed. */
export const originRule =
  ({ origins, acceptsLoopbackOrigins }: OurOrigins) =>
  (origin: string): boolean =>
    origins.has(origin) || (acceptsLoopbackOrigins && isLoopbackOrigin(origin));

/** A development server on this machine has its own port; a server on a standard port is not one. */
function isLoopbackOrigin(origin: string): boolean {
  const url = parseAddress(origin);
  return url?.origin === origin && /^https?:$/.test(url.protocol) && url.port !== '' && isLoopback(url.hostname);
}

/** `URL.parse`, which browsers support only since 2024. */
export function parseAddress(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
