import type { Context } from 'koa';
import { STATE_LIFE_MS } from '../../accounts/external-login.ts';
import type { Config } from '../../config/index.ts';
import { readCookie, writeCookie } from './cookie.ts';

type StateCookieConfig = Pick<Config, 'identityProvider'>;

/** interface.md section 5.7: `idp_oauth_state`, its prefix from IDP_NAME. */
const nameOf = ({ identityProvider }: StateCookieConfig) => `${identityProvider.name}_oauth_state`;

export const readStateCookie = (header: string | undefined, config: StateCookieConfig): string | undefined =>
  readCookie(header, nameOf(config));

/**
 * The cookie that ties a login flow to the browser that began it. SameSite=Lax: the browser must send it when it comes
 * back from the provider. Secure always, as the contract says: on localhost browsers and curl keep it over plain http
 * too.
 */
export function stateCookie(ctx: Context, config: StateCookieConfig) {
  const write = (value: string, maxAgeSeconds: number) =>
    writeCookie(ctx, nameOf(config), `${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}; Secure`);
  return {
    setState: (state: string) => write(state, STATE_LIFE_MS / 1000),
    clearState: () => write('', 0),
  };
}
