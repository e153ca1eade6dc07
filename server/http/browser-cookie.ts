import type { Context } from 'koa';
import { isBrowserId } from '../accounts/browsers.ts';
import { TOKEN_LIFE_MS } from '../accounts/one-time-tokens.ts';
import type { Config } from '../config.ts';
import { readCookie, writeCookie } from './cookies.ts';

type BrowserCookieConfig = Pick<Config, 'production'>;

/** With the prefix no other host can plant it: RFC 6265bis section 4.1.3.2. It demands Secure. */
const nameOf = ({ production }: BrowserCookieConfig) => (production ? '__Host-auth_browser' : 'auth_browser');

export function readBrowserCookie(header: string | undefined, config: BrowserCookieConfig): string | undefined {
  const value = readCookie(header, nameOf(config));
  return value !== undefined && isBrowserId(value) ? value : undefined;
}

/**
 * The cookie by which a browser that asked for an account is known again when the mailed link is opened, as long as that
 * works. SameSite=Lax: it must come along when the provider sends the browser back.
 */
export const browserCookie = (ctx: Context, config: BrowserCookieConfig) => ({
  setBrowser(id: string) {
    const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${TOKEN_LIFE_MS['verify-email'] / 1000}`;
    writeCookie(ctx, nameOf(config), `${id}; ${attributes}${config.production ? '; Secure' : ''}`);
  },
});
