import type { Context, Middleware } from 'koa';
import { callbackPath, type IdentityProviderClient } from '../../../config/identity-providers.ts';
import type { Config } from '../../../config/index.ts';
import { ServiceError } from '../../../errors.ts';
import { lazy } from '../../../lib/lazy.ts';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';
import type { Secrets } from '../../../secrets.ts';
import type { ProviderName } from '../../../shared/method-names.ts';
import type { Log } from '../../../telemetry/log.ts';
import { receiveBody } from '../../bodies/body.ts';
import { beAt } from '../../oauth/own-issuer.ts';
import { ownAddress } from '../own-address.ts';
import { devPage } from '../page.ts';
import { createProvider, SESSION_COOKIE } from './provider.ts';
import { createTestUsers, testUserIn } from './test-users.ts';

const MOUNT = '/dev/idp';

export interface DevIdentityProvider {
  /** The service as the only client of the embedded provider, by provider name. */
  clients: ReadonlyMap<ProviderName, IdentityProviderClient>;
  middleware: Middleware;
}

interface Parts {
  store: KeyValueStore;
  secrets: Secrets;
  log: Log;
}

/**
 * The embedded identity provider: an OpenID provider under /dev/idp that accepts any user typed on its page. It runs
 * only with the development tools, without other providers, and if oidc-provider is installed.
 */
export function devIdentityProvider(config: Config, { store, secrets, log }: Parts): DevIdentityProvider | undefined {
  const { embeddedProvider, appUrl, ownUrls } = config;
  if (!embeddedProvider) return undefined;
  if (!isInstalled()) {
    log.info('oidc-provider is not installed: the embedded provider is off');
    return undefined;
  }
  const client: IdentityProviderClient = {
    kind: 'oidc',
    issuer: appUrl + MOUNT,
    clientId: 'account-service',
    clientSecret: secrets.derive('dev-idp:client')[0],
    scopes: embeddedProvider.scopes,
    provesLogin: true,
    isTrustedForMfa: embeddedProvider.isTrustedForMfa,
    address: ownAddress(config),
  };
  const testUsers = createTestUsers(store);
  const provider = lazy(() => {
    const redirectUris = ownUrls.map((url) => url + callbackPath(embeddedProvider.name));
    return createProvider({ client, redirectUris, mount: MOUNT, testUsers, store, secrets, log });
  });

  const showForm = async (ctx: Context) => {
    await (await provider()).interactionDetails(ctx.req, ctx.res);
    ctx.type = 'html';
    ctx.body = devPage('Test provider', form);
  };

  const submitForm = async (ctx: Context) => {
    await receiveBody(ctx.req, async () => (await formParser())(ctx, async () => undefined));
    const submitted = ctx.request.body as Record<string, unknown>;
    const user = testUserIn(submitted);
    const isCancelled = submitted['action'] === 'cancel';
    if (!isCancelled) await testUsers.save(user);
    const result = isCancelled ? { error: 'access_denied' } : { login: { accountId: user.subject } };
    ctx.redirect(await (await provider()).interactionResult(ctx.req, ctx.res, result));
    ctx.status = 303;
  };

  return {
    clients: new Map([[embeddedProvider.name, client]]),
    middleware: async (ctx, next) => {
      if (ctx.path !== MOUNT && !ctx.path.startsWith(`${MOUNT}/`)) return next();
      ctx.state['route'] = MOUNT;
      beAt(appUrl, ctx.req);
      if (/^\/dev\/idp\/interaction\/[\w-]{1,64}$/.test(ctx.path)) {
        if (ctx.method !== 'GET' && ctx.method !== 'POST') throw new ServiceError('NOT_FOUND');
        // The cookie names the login that the page belongs to.
        return (ctx.method === 'GET' ? showForm(ctx) : submitForm(ctx)).catch(expired);
      }
      // The provider keeps no session: each login may be for another user.
      ctx.req.headers.cookie = withoutCookie(ctx.get('Cookie'), SESSION_COOKIE);
      ctx.respond = false;
      Object.assign(ctx.req, { originalUrl: ctx.req.url });
      ctx.req.url = ctx.req.url?.slice(MOUNT.length) || '/';
      await (await provider()).callback()(ctx.req, ctx.res);
    },
  };
}

/** Removes a cookie and its signature; both names share a prefix. */
const withoutCookie = (header: string, name: string) =>
  header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => !pair.startsWith(name))
    .join('; ');

function isInstalled(): boolean {
  try {
    import.meta.resolve('oidc-provider');
    return true;
  } catch {
    return false;
  }
}

function expired(error: unknown): never {
  const isTheirs = error instanceof Error && error.name === 'SessionNotFound';
  throw isTheirs ? new ServiceError('NOT_FOUND', { message: 'This login has expired. Please start a new one' }) : error;
}

const formParser = lazy(async () => {
  const { koaBody } = await import('koa-body');
  return koaBody({ json: false, multipart: false, text: false, urlencoded: true });
});

const form = `<p>This test provider accepts any input. It runs only in development, while no other provider is configured.</p>
<form method="post">
<label>Email <input name="email" type="email" required autofocus autocomplete="off" maxlength="254"></label>
<label>Name <input name="name" autocomplete="off" maxlength="100"></label>
<label><input name="verified" type="checkbox" value="yes" checked> Email is verified</label>
<label>Subject <input name="subject" autocomplete="off" maxlength="255" pattern="[!-~]+" aria-describedby="subject-help"></label>
<small id="subject-help">The same subject is the same user, even with a different email. If empty, it is derived from the email.</small>
<button name="action" value="login">Log in</button>
<button name="action" value="cancel" formnovalidate>Cancel</button>
</form>`;
