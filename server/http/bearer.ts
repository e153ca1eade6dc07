import type { Context } from 'koa';

/** RFC 6750 section 2.1. */
export const bearerToken = (authorization: string): string | undefined =>
  /^Bearer {1,8}(\S{1,1024})$/i.exec(authorization)?.[1];

/** The bearer credential of a request. */
export function bearerOf(ctx: Context): string | undefined {
  const { authorization } = ctx.headers;
  return authorization === undefined ? undefined : bearerToken(authorization);
}
