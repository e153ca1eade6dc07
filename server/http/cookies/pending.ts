import type { Context } from 'koa';
import { PENDING_LIFE_MS } from '../../accounts/login/index.ts';
import { isToken } from '../../lib/random-token.ts';
import { type CookieConfig, hostCookieName, readCookie, secureAttribute, writeCookie } from './cookie.ts';

const nameOf = (config: CookieConfig) => hostCookieName('auth_pending', config);

export function readPendingCookie(header: string | undefined, config: CookieConfig): string | undefined {
  const value = readCookie(header, nameOf(config));
  return value !== undefined && isToken(value) ? value : undefined;
}

/** The cookie of a login that waits for its second factor. It grants nothing else. */
export function pendingCookie(ctx: Context, config: CookieConfig) {
  const write = (value: string, maxAgeSeconds: number) => {
    const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}`;
    writeCookie(ctx, nameOf(config), `${value}; ${attributes}${secureAttribute(config)}`);
  };
  return {
    setPending: (token: string) => write(token, PENDING_LIFE_MS / 1000),
    clearPending: () => write('', 0),
  };
}
