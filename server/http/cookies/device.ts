import type { Context } from 'koa';
import { isDeviceCookie } from '../../accounts/known-devices.ts';
import type { Config } from '../../config/index.ts';
import { readCookie, writeCookie } from './cookie.ts';

type DeviceCookieConfig = Pick<Config, 'production'>;

/** The longest that browsers keep a cookie: 400 days (RFC 6265bis section 5.5). */
const LIFE_SECONDS = 400 * 24 * 60 * 60;

/** With the prefix no other host can plant the cookie: RFC 6265bis section 4.1.3.2. The prefix demands Secure. */
const nameOf = ({ production }: DeviceCookieConfig) => (production ? '__Host-auth_device' : 'auth_device');

export function readDeviceCookie(header: string | undefined, config: DeviceCookieConfig): string | undefined {
  const value = readCookie(header, nameOf(config));
  return value !== undefined && isDeviceCookie(value) ? value : undefined;
}

/**
 * The cookie by which a device is known that a user has logged in from: each login sets it anew. SameSite=Lax: the browser
 * must send it when it comes back from the provider.
 */
export const deviceCookie = (ctx: Context, config: DeviceCookieConfig) => ({
  setDevice(value: string) {
    const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${LIFE_SECONDS}`;
    writeCookie(ctx, nameOf(config), `${value}; ${attributes}${config.production ? '; Secure' : ''}`);
  },
});
