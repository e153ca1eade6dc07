import type { Context } from 'koa';
import { isBrowserId } from '../../accounts/browsers.ts';
import { mailKinds } from '../../accounts/mail-kinds.ts';
import type { Config } from '../../config/index.ts';
import { readCookie, writeCookie } from './cookie.ts';

type BrowserCookieConfig = Pick<Config, 'production'>;

/** With the prefix no other host can plant the cookie: RFC 6265bis section 4.1.3.2. The prefix demands Secure. */
const nameOf = ({ production }: BrowserCookieConfig) => (production ? '__Host-auth_browser' : 'auth_browser');

export function readBrowserCookie(header: string | undefined, config: BrowserCookieConfig): string | undefined {
  const value = readCookie(header, nameOf(config));
  return value !== undefined && isBrowserId(value) ? value : undefined;
}

/**
 * The cookie that recognizes a browser that asked for an account when the mailed link is opened there, for as long as
 * the link works. SameSite=Lax: the browser must send it when it comes back from the provider.
 */
export const browserCookie = (ctx: Context, config: BrowserCookieConfig) => ({
  setBrowser(id: string) {
    const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${mailKinds['verify-email'].lifeMs / 1000}`;
    writeCookie(ctx, nameOf(config), `${id}; ${attributes}${config.production ? '; Secure' : ''}`);
  },
});
