import type { Context } from 'koa';
import type { Config } from '../../config/index.ts';

export type CookieConfig = Pick<Config, 'secureCookies'>;

/**
 * The `__Host-` prefix prevents other hosts from setting the cookie (RFC 6265bis section 4.1.3.2). It requires Secure.
 */
export const hostCookieName = (name: string, { secureCookies }: CookieConfig) =>
  secureCookies ? `__Host-${name}` : name;

/** The last attribute of a Set-Cookie line. */
export const secureAttribute = ({ secureCookies }: CookieConfig) => (secureCookies ? '; Secure' : '');

/** The values of all cookies of a name in a Cookie header, in one pass. */
function valuesIn(header: string, name: string): string[] {
  const start = `${name}=`;
  const values: string[] = [];
  for (let at = header.indexOf(start); at !== -1; ) {
    const next = header.indexOf(';', at);
    const end = next === -1 ? header.length : next;
    const before = header.slice(header.lastIndexOf(';', at) + 1, at);
    if (before.trim() === '') values.push(header.slice(at + start.length, end).trimEnd());
    at = header.indexOf(start, end);
  }
  return values;
}

export const hasCookie = (header: string, name: string): boolean => valuesIn(header, name).length > 0;

/** The value of a cookie in a Cookie header. Two cookies of one name count as missing: one of them may be forged. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (!header) return undefined;
  const values = valuesIn(header, name);
  return values.length === 1 ? values[0] : undefined;
}

/**
 * Sets a cookie and keeps cookies of other names; each line is a value with its attributes. The last call of a request
 * wins.
 */
export function writeCookie(ctx: Context, name: string, ...lines: string[]): void {
  const others = [ctx.response.headers['set-cookie'] ?? []].flat().filter((line) => !line.startsWith(`${name}=`));
  ctx.set('Set-Cookie', [...others, ...lines.map((line) => `${name}=${line}`)]);
}
