import { type OurOrigins, originRule, parseAddress } from './origins.ts';
import { servicePaths } from './page-paths.ts';

const LONGEST = 2048;

/** Without the rest of Unicode, white space, control characters and the backslash, which browsers read as a slash. */
const printable = /^[!-[\]-~]+$/;
/** What a server or proxy on the way could decode to another path: a slash, backslash, percent sign or control character. */
const ambiguous = /%(?:2f|5c|25|[01][\da-f]|7f)/i;

/**
 * The one rule of where a login may lead, for the service and its pages: a path of ours, or an absolute address on one of
 * our origins, at most 2048 characters. Never one that the service answers itself, at any origin: a GET below /auth begins
 * something. Answers the address as a browser parses it (a path stays a path), or undefined for any other text or value.
 */
export function returnAddress(asked: unknown, ours: OurOrigins): string | undefined {
  if (typeof asked !== 'string' || asked.length > LONGEST || !printable.test(asked)) return undefined;
  const isPath = /^\/(?!\/)/.test(asked);
  if (!isPath && !/^https?:\/\/[^/?#]/i.test(asked)) return undefined;
  // Of a path only what follows the host counts.
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
