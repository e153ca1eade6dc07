import type { Context } from 'koa';
import type { Config } from '../../config/index.ts';
import { isToken } from '../../lib/random-token.ts';
import { type CookieConfig, hasCookie, readCookie, secureAttribute, writeCookie } from './cookie.ts';

/** interface.md section 5. */
const NAME = 'auth_session';

/** The token in a Cookie header. */
export function readSessionCookie(header: string | undefined): string | undefined {
  const value = readCookie(header, NAME);
  return value !== undefined && isToken(value) ? value : undefined;
}

/** Writes the session cookie; the last call of a request wins. */
export function sessionCookies(ctx: Context, config: CookieConfig & Pick<Config, 'cookieDomain'>) {
  const { cookieDomain } = config;
  const write = (value: string, maxAgeSeconds: number) => {
    const domain = cookieDomain ? `; Domain=${cookieDomain}` : '';
    const secure = secureAttribute(config);
    const line = (content: string, seconds: number) =>
      `${content}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`;
    // A cookie without a domain, from before COOKIE_DOMAIN was set, would be a second one; two count as missing
    // (readCookie).
    const former = cookieDomain && hasCookie(ctx.get('Cookie'), NAME) ? [line('', 0) + secure] : [];
    writeCookie(ctx, NAME, line(value, maxAgeSeconds) + domain + secure, ...former);
  };
  return {
    setSession({ token, expiresAt }: { token: string; expiresAt: number }) {
      write(token, Math.round((expiresAt - Date.now()) / 1000));
    },
    forgetSession: () => writeCookie(ctx, NAME),
    clearSession: () => write('', 0),
  };
}
