/*
 * A login may lead to a path of the service's host, or to an absolute URL on an allowed origin, of at most 2048
 * characters. Paths that the service handles itself are refused at any origin: a GET below /auth has side effects.
 */

import { type OurOrigins, originRule, parseAddress } from './origins.ts';
import { servicePaths } from './page-paths.ts';

const LONGEST = 2048;

/** Excludes the rest of Unicode, white space, control characters and the backslash, which browsers read as a slash. */
const printable = /^[!-[\]-~]+$/;
/**
 * Encodings that a server or proxy could decode to another path: slash, backslash, percent sign, control characters.
 */
const ambiguous = /%(?:2f|5c|25|[01][\da-f]|7f)/i;

/**
 * Validates a `returnTo`, for the service and its pages. Returns the URL as a browser parses it (a path stays a path),
 * or undefined.
 */
export function returnAddress(asked: unknown, ours: OurOrigins): string | undefined {
  if (typeof asked !== 'string' || asked.length > LONGEST || !printable.test(asked)) return undefined;
  const isPath = /^\/(?!\/)/.test(asked);
  if (!isPath && !/^https?:\/\/[^/?#]/i.test(asked)) return undefined;
  // Of a path, only the part after the host counts.
  const url = isPath ? parseAddress(asked, 'http://ours.invalid') : parseAddress(asked);
  if (url?.username !== '' || url.password !== '' || !isPagePath(url.pathname)) return undefined;
  if (isPath) return url.pathname + url.search + url.hash;
  return originRule(ours)(url.origin) ? url.href : undefined;
}

/** Takes a path as `URL.pathname` spells it: without dot segments. */
function isPagePath(path: string): boolean {
  if (path.includes('//') || ambiguous.test(path)) return false;
  const decoded = decodedPath(path)?.toLowerCase();
  return decoded !== undefined && !servicePaths.some((own) => decoded === own || decoded.startsWith(`${own}/`));
}

function decodedPath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
