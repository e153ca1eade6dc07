import Koa from 'koa';
import type { Rules } from '../../routers/context.ts';
import type { Config } from '../config/index.ts';
import type { Database } from '../parts/database/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Log } from '../telemetry/log.ts';
import type { Texts } from '../texts/index.ts';
import { docs } from './api/docs.ts';
import { rest } from './api/rest.ts';
import { rpc } from './api/rpc.ts';
import { unreadBodies } from './bodies/unread-body.ts';
import { proxyWarning } from './client-address.ts';
import { contextFactory } from './context.ts';
import { devHost } from './dev/host.ts';
import type { DevIdentityProvider } from './dev/idp/index.ts';
import { devMail } from './dev/mail.ts';
import { mailedLink } from './dev/mailed-link.ts';
import { answerFailures } from './failures.ts';
import { limitWarning } from './limit-warning.ts';
import { oauth as oauthEndpoints } from './oauth/oauth.ts';
import { probes } from './probes.ts';
import { requestLog } from './request-log.ts';
import { boundedAccept, crossOrigin, originCheck, requireTarget, securityHeaders } from './security.ts';
import { telemetry } from './telemetry.ts';
import { files } from './web/files.ts';
import { pageSettings } from './web/page-settings.ts';
import { designPage, pages } from './web/pages.ts';

interface Parts {
  rules: Rules;
  database: Database;
  store: KeyValueStore;
  objects: ObjectStorage;
  devIdentityProvider: DevIdentityProvider | undefined;
  texts: Texts;
  log: Log;
  /** Aborted when the shutdown of the process begins. */
  stopping: AbortSignal;
}

/** The HTTP application: middleware in the order in which a request passes through it. */
export function createApp(
  config: Config,
  { rules, database, store, objects, devIdentityProvider, texts, log, stopping }: Parts,
): Koa {
  const { accounts, oauth, limits } = rules;
  const app = new Koa();
  // Cacheable responses set their own header: most responses are about one user and one moment.
  const headers = { ...securityHeaders(config), 'Cache-Control': 'no-store' };
  const createContext = contextFactory(config, { rules, database, stopping });
  const lists = { identityProviders: accounts.providers.names };

  app.use(async (ctx, next) => {
    ctx.set(headers);
    await next();
    endLine(ctx);
    // The client opens its next connection, which another process accepts.
    if (stopping.aborted) ctx.set('Connection', 'close');
  });
  const measured = telemetry();
  if (measured) app.use(measured);
  app.use(requestLog(log));
  app.use(unreadBodies());
  app.use(limitWarning(log));
  app.use(answerFailures(log));
  if (config.trustedProxies === 0) app.use(proxyWarning(log));
  app.use(requireTarget);
  app.use(boundedAccept);
  app.use(oauthEndpoints(config, { oauth, limits, log }));
  app.use(crossOrigin(config, log));
  app.use(originCheck(config));
  app.use(rest(lists, createContext, endsOfFlows(config)));
  app.use(rpc(createContext, log));
  app.use(docs(config, lists).routes());
  if (objects.served) app.use(files(objects.served, config).routes());
  app.use(probes({ database, store, stopping }).routes());
  app.use(devHost(config));
  if (config.devTools) app.use(mailedLink(createContext));
  if (config.devTools) app.use(devMail(config).routes());
  if (devIdentityProvider) app.use(devIdentityProvider.middleware);

  const accountPages = config.pages && pages(pageSettings(config, accounts), texts, log);
  const design = accountPages && config.devTools && designPage(pageSettings(config, accounts), texts, log);
  if (design) app.use(design);
  if (accountPages) app.use(accountPages);

  // Failures while a response is sent: mostly clients that disconnected.
  app.on('error', (error) => log.debug({ err: error }, 'a response could not be sent'));
  return app;
}

/** JSON ends with a newline, so that a shell's prompt is on the next line. Koa would serialize the object only later. */
function endLine(ctx: Koa.Context): void {
  const body: unknown = ctx.body;
  if (typeof body === 'object' && body !== null && isPlain(body)) ctx.body = `${JSON.stringify(body)}\n`;
}

/** Not a buffer or stream. */
const isPlain = (body: object): boolean => Array.isArray(body) || Object.getPrototypeOf(body) === Object.prototype;

/** The front ends at which a flow through a provider may end. */
const endsOfFlows = ({ brand, origins, acceptsLoopbackOrigins }: Config) => ({
  origins: brand.home === undefined ? origins : new Set([...origins, new URL(brand.home).origin]),
  acceptsLoopbackOrigins,
});
