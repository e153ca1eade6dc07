import type { Context } from 'koa';
import { mailKinds } from '../../accounts/mail/index.ts';
import { isToken } from '../../lib/random-token.ts';
import { type CookieConfig, hostCookieName, readCookie, secureAttribute, writeCookie } from './cookie.ts';

const nameOf = (config: CookieConfig) => hostCookieName('auth_browser', config);

export function readBrowserCookie(header: string | undefined, config: CookieConfig): string | undefined {
  const value = readCookie(header, nameOf(config));
  return value !== undefined && isToken(value) ? value : undefined;
}

/**
 * Recognizes the browser that registered when the mailed link is opened there, for the lifetime of the link.
 * SameSite=Lax: the browser must send it when it returns from the provider.
 */
export const browserCookie = (ctx: Context, config: CookieConfig) => ({
  setBrowser(id: string) {
    const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${mailKinds['verify-email'].lifeMs / 1000}`;
    writeCookie(ctx, nameOf(config), `${id}; ${attributes}${secureAttribute(config)}`);
  },
});
