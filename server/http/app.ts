import Koa from 'koa';
import type { Accounts } from '../accounts/index.ts';
import type { Config } from '../config/index.ts';
import type { Log } from '../log.ts';
import type { Database } from '../parts/database/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Texts } from '../texts/index.ts';
import type { Uploads } from '../uploads/index.ts';
import { docs } from './api/docs.ts';
import { rest } from './api/rest.ts';
import { rpc } from './api/rpc.ts';
import { proxyWarning } from './client-address.ts';
import { contextFactory } from './context.ts';
import { devHost } from './dev/host.ts';
import type { DevIdentityProvider } from './dev/idp/index.ts';
import { devMail } from './dev/mail.ts';
import { mailedLink } from './dev/mailed-link.ts';
import { answerFailures } from './failures.ts';
import { oneByOne } from './one-by-one.ts';
import { probes } from './probes.ts';
import { requestLog } from './request-log.ts';
import { crossOrigin, originCheck, requireTarget, securityHeaders } from './security.ts';
import { telemetry } from './telemetry.ts';
import { unreadBodies } from './unread-body.ts';
import { files } from './web/files.ts';
import { pages } from './web/pages.ts';

interface Parts {
  accounts: Accounts;
  uploads: Uploads;
  database: Database;
  store: KeyValueStore;
  objects: ObjectStorage;
  devIdentityProvider: DevIdentityProvider | undefined;
  texts: Texts;
  log: Log;
  /** Aborted as soon as the process begins to end. */
  stopping: AbortSignal;
}

/** The whole HTTP application, in the order in which a request passes through it. */
export function createApp(
  config: Config,
  { accounts, uploads, database, store, objects, devIdentityProvider, texts, log, stopping }: Parts,
): Koa {
  const app = new Koa();
  // Answers that may be cached say so themselves: most answers are about one user and one moment.
  const headers = { ...securityHeaders(config), 'Cache-Control': 'no-store' };
  const createContext = contextFactory(config, { accounts, uploads, database });

  app.use(oneByOne());
  app.use(async (ctx, next) => {
    ctx.set(headers);
    await next();
    // So that the client opens its next connection, to another process.
    if (stopping.aborted) ctx.set('Connection', 'close');
  });
  const measured = telemetry();
  if (measured) app.use(measured);
  app.use(requestLog(log));
  app.use(unreadBodies());
  app.use(answerFailures(log));
  if (config.trustedProxies === 0) app.use(proxyWarning(log));
  app.use(requireTarget);
  app.use(crossOrigin(config, log));
  app.use(originCheck(config));
  app.use(rest(accounts, createContext));
  app.use(rpc(createContext, log));
  app.use(docs(config, accounts).routes());
  if (objects.served) app.use(files(objects.served).routes());
  app.use(probes({ database, store, stopping }).routes());
  app.use(devHost(config));
  if (config.devTools) app.use(mailedLink(createContext));
  if (config.devTools) app.use(devMail(config).routes());
  if (devIdentityProvider) app.use(devIdentityProvider.middleware);

  const accountPages = config.pages && pages(pageSettings(config, accounts), texts, log);
  if (accountPages) app.use(accountPages);

  // Failures while an answer is being sent: mostly clients that left.
  app.on('error', (error) => log.debug({ err: error }, 'an answer could not be sent'));
  return app;
}

/** The settings of the account pages that depend on the configuration and the parts. */
const pageSettings = (
  { appUrl, registration, smtpUrl, brand, origins, acceptsLoopbackOrigins, termsVersion }: Config,
  { identityProviders, reauthenticatingProviders }: Accounts,
) => ({
  appUrl,
  brand,
  origins: [...origins],
  acceptsLoopbackOrigins,
  providers: identityProviders,
  reauthenticatingProviders,
  registration,
  termsVersion,
  mailbox: smtpUrl ? undefined : '/dev/mail',
});
