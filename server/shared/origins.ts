import { isLoopback } from './loopback.ts';

/** Whose browsers may call the service. Shared with the account pages. */
export interface OurOrigins {
  /** Those of APP_URL and of ALLOWED_ORIGINS, as `URL.origin` spells them. */
  origins: ReadonlySet<string>;
  /** Whether front ends on any port of this machine are ours too, such as Vite's 5173. */
  acceptsLoopbackOrigins: boolean;
}

/** Whether an origin is one of ours. */
export const originRule =
  ({ origins, acceptsLoopbackOrigins }: OurOrigins) =>
  (origin: string): boolean =>
    origins.has(origin) || (acceptsLoopbackOrigins && isLoopbackOrigin(origin));

/** A development server on this machine has a port of its own; a server at a standard port is not one. */
function isLoopbackOrigin(origin: string): boolean {
  const url = parseAddress(origin);
  return url?.origin === origin && /^https?:$/.test(url.protocol) && url.port !== '' && isLoopback(url.hostname);
}

/** `URL.parse`, which browsers have had since 2024 only. */
export function parseAddress(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
