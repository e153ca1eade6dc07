import type { Context } from 'koa';

/** The values of all cookies of a name in a Cookie header. */
function valuesIn(header: string, name: string): string[] {
  const start = `${name}=`;
  const values: string[] = [];
  for (const pair of header.split(';')) {
    const text = pair.trim();
    if (text.startsWith(start)) values.push(text.slice(start.length));
  }
  return values;
}

export const hasCookie = (header: string, name: string): boolean => valuesIn(header, name).length > 0;

/** The value of a cookie in a Cookie header. Two cookies of one name count as none: one of them was planted. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (!header) return undefined;
  const values = valuesIn(header, name);
  return values.length === 1 ? values[0] : undefined;
}

/**
 * Sets a cookie, each line its value and attributes, beside cookies of other names; the last call within a request
 * counts.
 */
export function writeCookie(ctx: Context, name: string, ...lines: string[]): void {
  const others = [ctx.response.headers['set-cookie'] ?? []].flat().filter((line) => !line.startsWith(`${name}=`));
  ctx.set('Set-Cookie', [...others, ...lines.map((line) => `${name}=${line}`)]);
}
