import { finished } from 'node:stream';
import type { Context as KoaContext } from 'koa';
import type { Context, Rules } from '../../routers/context.ts';
import type { Session } from '../accounts/sessions/index.ts';
import type { Config } from '../config/index.ts';
import { createServiceTokens, type ServiceTokens } from '../config/service-tokens.ts';
import { ServiceError } from '../errors.ts';
import { type Credential, challengeOf } from '../lib/credential.ts';
import { newToken } from '../lib/random-token.ts';
import type { Database } from '../parts/database/contract.ts';
import { pagePaths } from '../shared/page-paths.ts';
import { returnAddress } from '../shared/return-to.ts';
import type { Scope } from '../shared/scopes.ts';
import { credentialOf } from './authorization.ts';
import { clientAddress } from './client-address.ts';
import { browserCookie, readBrowserCookie } from './cookies/browser.ts';
import { deviceCookie, readDeviceCookie } from './cookies/device.ts';
import { askedLanguage } from './cookies/language.ts';
import { pendingCookie, readPendingCookie } from './cookies/pending.ts';
import { readSessionCookie, sessionCookies } from './cookies/session.ts';
import { readStateCookie, stateCookies } from './cookies/state.ts';
import { isAskedOnOurPages, isPage } from './security.ts';

interface Parts {
  rules: Rules;
  database: Database;
  /** Aborted when the shutdown of the process begins. */
  stopping: AbortSignal;
}

export type ContextFactory = (ctx: KoaContext) => Context;

/** Creates the context of a procedure from a Koa request, one per call. */
export const contextFactory = (config: Config, parts: Parts): ContextFactory => {
  const serviceTokens = createServiceTokens(config.serviceTokens);
  return (ctx) => new RequestContext(ctx, config, parts, serviceTokens);
};

/** RFC 6750 section 3.1: which of the two is meant is unknown. */
const twoCredentials = (credential: Credential) =>
  new ServiceError('VALIDATION_FAILED', {
    message: `The request has a session cookie and a ${credential.proof ? 'token' : 'bearer credential'}; send one of them`,
    challenge: challengeOf(credential, 'error="invalid_request"'),
  });

/** Every value is computed on first use: most procedures use few of them. */
class RequestContext implements Context {
  readonly #ctx: KoaContext;
  readonly #config: Config;
  readonly #parts: Parts;
  readonly #serviceTokens: ServiceTokens;
  session: Session | undefined;
  scopes: readonly Scope[] | undefined;

  constructor(ctx: KoaContext, config: Config, parts: Parts, serviceTokens: ServiceTokens) {
    this.#ctx = ctx;
    this.#config = config;
    this.#parts = parts;
    this.#serviceTokens = serviceTokens;
  }

  get accounts() {
    return this.#parts.rules.accounts;
  }

  get access() {
    return this.#parts.rules.access;
  }

  get applications() {
    return this.#parts.rules.applications;
  }

  get challenges() {
    return this.#parts.rules.challenges;
  }

  get oauth() {
    return this.#parts.rules.oauth;
  }

  get events() {
    return this.#parts.rules.events;
  }

  get limits() {
    return this.#parts.rules.limits;
  }

  get uploads() {
    return this.#parts.rules.uploads;
  }

  get webhooks() {
    return this.#parts.rules.webhooks;
  }

  clientAddress() {
    const { socket } = this.#ctx.req;
    return clientAddress(socket.remoteAddress, this.#ctx.get('X-Forwarded-For'), this.#config.trustedProxies);
  }

  challengeSolution() {
    return this.#ctx.get('Challenge-Solution');
  }

  expectedUser() {
    return this.#ctx.get('Expected-User');
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
    const token = readSessionCookie(this.#ctx.get('Cookie'));
    const { credential } = this;
    if (token !== undefined && credential !== undefined) throw twoCredentials(credential);
    return token;
  }

  get credential() {
    return credentialOf(this.#ctx, this.#config);
  }

  get service() {
    const { credential } = this;
    return credential && !credential.proof ? this.#serviceTokens.nameOf(credential.token) : undefined;
  }

  browser() {
    const { state } = this.#ctx;
    state['browser'] ??= readBrowserCookie(this.#ctx.get('Cookie'), this.#config) ?? newToken();
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

  isAskedOnOurPages() {
    return isAskedOnOurPages(this.#ctx, this.#config);
  }

  isPage() {
    return isPage(this.#ctx);
  }

  isNavigation() {
    return this.#ctx.get('Sec-Fetch-Mode') === 'navigate';
  }

  endOfLogin() {
    const { brand, pages } = this.#config;
    if (brand.home === undefined) return pagePaths.dashboard;
    // The tab may remember a page that required the login.
    return pages ? `${pagePaths.home}?notice=logged-in` : brand.home;
  }

  /** The configured own URL with the Host of the request, else APP_URL: a forged Host is never used. */
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

  hasArrived() {
    return this.#ctx.req.complete;
  }

  isGone() {
    return this.#ctx.req.socket.destroyed;
  }

  ended() {
    const gone = new AbortController();
    // At once if the client has gone already.
    finished(this.#ctx.res, () => gone.abort());
    return AbortSignal.any([gone.signal, this.#parts.stopping]);
  }

  pingDatabase() {
    return this.#parts.database.ping();
  }

  setStatus(status: number) {
    this.#ctx.status = status;
  }
}
