import type { Context as KoaContext } from 'koa';
import packageJson from '../../package.json' with { type: 'json' };
import type { Context } from '../../routers/context.ts';
import { newBrowserId } from '../accounts/browsers.ts';
import type { Accounts } from '../accounts/index.ts';
import type { Config } from '../config/index.ts';
import type { Database } from '../parts/database/contract.ts';
import type { Uploads } from '../uploads/index.ts';
import { clientAddress } from './client-address.ts';
import { browserCookie, readBrowserCookie } from './cookies/browser.ts';
import { readSessionCookie, sessionCookies } from './cookies/session.ts';
import { readStateCookie, stateCookies } from './cookies/state.ts';

export const version: string = packageJson.version;

/** Makes a procedure's view of a Koa request. */
export const contextFactory =
  (config: Config, { accounts, uploads, database }: { accounts: Accounts; uploads: Uploads; database: Database }) =>
  (ctx: KoaContext): Context => {
    let browser: string | undefined;
    return {
      accounts,
      uploads,
      clientAddress: () =>
        clientAddress(ctx.req.socket.remoteAddress, ctx.get('X-Forwarded-For'), config.trustedProxies),
      sessionToken: readSessionCookie(ctx.get('Cookie')),
      stateCookie: (provider) => readStateCookie(ctx.get('Cookie'), provider),
      ownUrl: () => ownUrl(config, ctx.get('Host')),
      browser() {
        browser ??= readBrowserCookie(ctx.get('Cookie'), config) ?? newBrowserId();
        return browser;
      },
      service: serviceOf(accounts, ctx.get('Authorization')),
      cookies: { ...sessionCookies(ctx, config), ...stateCookies(ctx), ...browserCookie(ctx, config) },
      setLogUser(userId) {
        ctx.state['userId'] = userId;
      },
      setLogService(name) {
        ctx.state['service'] = name;
      },
      pingDatabase: () => database.ping(),
      setStatus(status) {
        ctx.status = status;
      },
      version,
    };
  };

/** One of the fixed list of our own addresses, whatever the request names. */
const ownUrl = ({ appUrl, ownUrls }: Config, host: string) =>
  ownUrls.find((url) => new URL(url).host === host) ?? appUrl;

function serviceOf({ serviceTokens }: Accounts, authorization: string): string | undefined {
  const token = bearerToken(authorization);
  return token && serviceTokens.nameOf(token);
}

/** RFC 6750 section 2.1. */
export const bearerToken = (authorization: string): string | undefined =>
  /^Bearer {1,8}(\S{1,1024})$/i.exec(authorization)?.[1];

export type ContextFactory = ReturnType<typeof contextFactory>;
