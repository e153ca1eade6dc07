import type { Context, Middleware } from 'koa';
import type { Config } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import { newToken } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import { endpointOf, type OAuth, RESUME_COOKIE, resumedIn, routes, startLimitOf } from '../../oauth/index.ts';
import type { Log } from '../../telemetry/log.ts';
import { receiveBody } from '../bodies/body.ts';
import { formParameters } from '../bodies/form-parameters.ts';
import { clientAddress } from '../client-address.ts';
import { browserCookie, readBrowserCookie } from '../cookies/browser.ts';
import { reportFailure } from '../failures.ts';
import { isAskedOnOurPages, isPage } from '../security.ts';
import { toLogoutPage } from './logout.ts';
import { beAt } from './own-issuer.ts';

/**
 * The endpoints of the OpenID provider, which exist while there is an application. They are called from other origins
 * and take no session cookie: a request is bound to its browser only, and the account page knows the session.
 */
export function oauth(
  config: Config,
  { oauth, limits, log }: { oauth: OAuth; limits: Pick<Limits, 'enforce'>; log: Log },
): Middleware {
  return async (ctx, next) => {
    const endpoint = endpointOf(ctx.path);
    if (endpoint === undefined || !(await oauth.isOn())) return next();
    const { req, res } = ctx;
    ctx.state['route'] = endpoint;
    if (endpoint === routes.end_session) return ['GET', 'POST'].includes(ctx.method) ? toLogoutPage(ctx) : next();
    if (ctx.method === 'POST' && endpoint === routes.authorization) return repeatAsGet(ctx);
    if (ctx.method === 'HEAD' && ctx.path.startsWith(routes.authorization)) {
      ctx.status = 204;
      return;
    }
    const address = clientAddress(req.socket.remoteAddress, ctx.get('X-Forwarded-For'), config.trustedProxies);
    // Each start counts for the address of a visitor, who does not see what a page of another site loads in a frame.
    if (endpoint === routes.authorization && !isPage(ctx) && !isAskedOnOurPages(ctx, config))
      throw new ServiceError('ORIGIN_MISMATCH');
    const limit = startLimitOf(ctx.method, ctx.path);
    if (limit) await limits.enforce(limit, address);

    const known = readBrowserCookie(ctx.get('Cookie'), config);
    const browser = known ?? newToken();
    if (limit === 'authorizationStart') browserCookie(ctx, config).setBrowser(browser);
    const resumed = resumedIn(ctx.path);
    const isBound = resumed !== undefined && known !== undefined && (await oauth.isBegunBy(resumed, known));
    req.headers.cookie = isBound ? `${RESUME_COOKIE}=${resumed}` : '';
    beAt(config.appUrl, req);
    ctx.respond = false;
    const report = (failure: ServiceError) => reportFailure(ctx, failure, log);
    await receiveBody(req, () => oauth.handle(req, res, { browser, clientAddress: address, report })).catch(
      (error: unknown) => {
        ctx.respond = true;
        throw error;
      },
    );
  };
}

/**
 * Applications may send an authorization request as a form (OpenID Connect Core section 3.1.2.1). A form of another site
 * has no cookie of the browser; the GET has it.
 */
async function repeatAsGet(ctx: Context): Promise<void> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(await formParameters(ctx)))
    for (const each of [value].flat()) query.append(name, String(each));
  ctx.status = 303;
  ctx.redirect(`${ctx.path}?${query}`);
}
