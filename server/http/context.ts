import type { Context as KoaContext } from 'koa';
import packageJson from '../../package.json' with { type: 'json' };
import type { Context } from '../../routers/context.ts';
import { newBrowserId } from '../accounts/browsers.ts';
import type { Accounts } from '../accounts/index.ts';
import type { Session } from '../accounts/sessions.ts';
import type { Config } from '../config/index.ts';
import type { Database } from '../parts/database/contract.ts';
import { returnAddress } from '../return-to.ts';
import type { Uploads } from '../uploads/index.ts';
import { clientAddress } from './client-address.ts';
import { browserCookie, readBrowserCookie } from './cookies/browser.ts';
import { deviceCookie, readDeviceCookie } from './cookies/device.ts';
import { askedLanguage } from './cookies/language.ts';
import { pendingCookie, readPendingCookie } from './cookies/pending.ts';
import { readSessionCookie, sessionCookies } from './cookies/session.ts';
import { readStateCookie, stateCookies } from './cookies/state.ts';
import { isFromOurPages } from './security.ts';

export const version: string = packageJson.version;

interface Parts {
  accounts: Accounts;
  uploads: Uploads;
  database: Database;
}

export type ContextFactory = (ctx: KoaContext) => Context;

/** Makes a procedure's view of a Koa request, one for each call. */
export const contextFactory =
  (config: Config, parts: Parts): ContextFactory =>
  (ctx) =>
    new RequestContext(ctx, config, parts);

/** Everything is worked out when a procedure asks for it: most ask for little. */
class RequestContext implements Context {
  readonly #ctx: KoaContext;
  readonly #config: Config;
  readonly #parts: Parts;
  session: Session | undefined;

  constructor(ctx: KoaContext, config: Config, parts: Parts) {
    this.#ctx = ctx;
    this.#config = config;
    this.#parts = parts;
  }

  get accounts() {
    return this.#parts.accounts;
  }

  get uploads() {
    return this.#parts.uploads;
  }

  get version() {
    return version;
  }

  clientAddress() {
    const { socket } = this.#ctx.req;
    return clientAddress(socket.remoteAddress, this.#ctx.get('X-Forwarded-For'), this.#config.trustedProxies);
  }

  userAgent() {
    return this.#ctx.get('User-Agent');
  }

  language() {
    return askedLanguage(this.#ctx);
  }

  requestId() {
    return this.#ctx.state['id'] as string;
  }

  get sessionToken() {
    return readSessionCookie(this.#ctx.get('Cookie'));
  }

  get service() {
    const token = bearerToken(this.#ctx.get('Authorization'));
    return token && this.#parts.accounts.serviceTokens.nameOf(token);
  }

  browser() {
    const { state } = this.#ctx;
    state['browser'] ??= readBrowserCookie(this.#ctx.get('Cookie'), this.#config) ?? newBrowserId();
    return state['browser'] as string;
  }

  get deviceCookie() {
    return readDeviceCookie(this.#ctx.get('Cookie'), this.#config);
  }

  get pendingLogin() {
    return readPendingCookie(this.#ctx.get('Cookie'), this.#config);
  }

  stateCookie(provider: string) {
    return readStateCookie(this.#ctx.get('Cookie'), provider);
  }

  isFromOurPages() {
    return isFromOurPages(this.#ctx, this.#config);
  }

  isNavigation() {
    return this.#ctx.get('Sec-Fetch-Mode') === 'navigate';
  }

  /** One of the fixed list of our own addresses, whatever the request names. */
  ownUrl() {
    const host = this.#ctx.get('Host');
    return this.#config.ownUrls.find((url) => new URL(url).host === host) ?? this.#config.appUrl;
  }

  returnAddress(asked: string) {
    return returnAddress(asked, this.#config);
  }

  get cookies() {
    const [ctx, config] = [this.#ctx, this.#config];
    return {
      ...sessionCookies(ctx, config),
      ...stateCookies(ctx),
      ...browserCookie(ctx, config),
      ...deviceCookie(ctx, config),
      ...pendingCookie(ctx, config),
    };
  }

  setLogUser(userId: string) {
    this.#ctx.state['userId'] = userId;
  }

  setLogService(name: string) {
    this.#ctx.state['service'] = name;
  }

  pingDatabase() {
    return this.#parts.database.ping();
  }

  setStatus(status: number) {
    this.#ctx.status = status;
  }
}

/** RFC 6750 section 2.1. */
export const bearerToken = (authorization: string): string | undefined =>
  /^Bearer {1,8}(\S{1,1024})$/i.exec(authorization)?.[1];
