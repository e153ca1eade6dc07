import type { Context } from 'koa';
import { isDeviceCookie } from '../../accounts/sessions/index.ts';
import { type CookieConfig, hostCookieName, readCookie, secureAttribute, writeCookie } from './cookie.ts';

/** The maximum lifetime of a cookie in browsers: 400 days (RFC 6265bis section 5.5). */
const LIFE_SECONDS = 400 * 24 * 60 * 60;

const nameOf = (config: CookieConfig) => hostCookieName('auth_device', config);

export function readDeviceCookie(header: string | undefined, config: CookieConfig): string | undefined {
  const value = readCookie(header, nameOf(config));
  return value !== undefined && isDeviceCookie(value) ? value : undefined;
}

/**
 * Recognizes a device from which a user has logged in; each login renews it. SameSite=Lax: the browser must send it
 * when it returns from the provider.
 */
export const deviceCookie = (ctx: Context, config: CookieConfig) => ({
  setDevice(value: string) {
    const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${LIFE_SECONDS}`;
    writeCookie(ctx, nameOf(config), `${value}; ${attributes}${secureAttribute(config)}`);
  },
});
