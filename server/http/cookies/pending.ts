import type { Context } from 'koa';
import { isPendingToken, PENDING_LIFE_MS } from '../../accounts/login-steps.ts';
import type { Config } from '../../config/index.ts';
import { readCookie, writeCookie } from './cookie.ts';

type PendingCookieConfig = Pick<Config, 'production'>;

/** With the prefix no other host can plant the cookie: RFC 6265bis section 4.1.3.2. The prefix demands Secure. */
const nameOf = ({ production }: PendingCookieConfig) => (production ? '__Host-auth_pending' : 'auth_pending');

export function readPendingCookie(header: string | undefined, config: PendingCookieConfig): string | undefined {
  const value = readCookie(header, nameOf(config));
  return value !== undefined && isPendingToken(value) ? value : undefined;
}

/** The cookie of a login that waits for its second factor: it opens nothing else. */
export function pendingCookie(ctx: Context, config: PendingCookieConfig) {
  const write = (value: string, maxAgeSeconds: number) => {
    const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}`;
    writeCookie(ctx, nameOf(config), `${value}; ${attributes}${config.production ? '; Secure' : ''}`);
  };
  return {
    setPending: (token: string) => write(token, PENDING_LIFE_MS / 1000),
    clearPending: () => write('', 0),
  };
}
