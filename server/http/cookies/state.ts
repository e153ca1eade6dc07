import type { Context } from 'koa';
import { STATE_LIFE_MS } from '../../accounts/providers/index.ts';
import { readCookie, writeCookie } from './cookie.ts';

/** interface.md section 5.7: `idp_oauth_state`, prefixed with the provider's name. */
const nameOf = (provider: string) => `${provider}_oauth_state`;

export const readStateCookie = (header: string | undefined, provider: string): string | undefined =>
  readCookie(header, nameOf(provider));

/**
 * Ties a login flow to the browser that began it, one cookie per provider. SameSite=Lax: the browser must send it when
 * it returns. Always Secure: on localhost browsers and curl keep it over plain http too.
 */
export function stateCookies(ctx: Context) {
  const write = (provider: string, value: string, maxAgeSeconds: number) =>
    writeCookie(ctx, nameOf(provider), `${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}; Secure`);
  return {
    setState: (provider: string, state: string) => write(provider, state, STATE_LIFE_MS / 1000),
    clearState: (provider: string) => write(provider, '', 0),
  };
}
