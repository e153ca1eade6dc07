import type { Context } from 'koa';
import { z } from 'zod';
import { lazy } from '../lib/lazy.ts';
import { pagePaths } from '../shared/page-paths.ts';
import { hasBody } from './body.ts';
import { parseBody } from './parse-body.ts';

/** Less than the headers of an answer that proxies accept: the parameters come back in `Location`. */
const LIMIT = '4kb';

const parser = lazy(async () => {
  const { koaBody } = await import('koa-body');
  return koaBody({ formLimit: LIMIT, urlencoded: true, json: false, text: false, multipart: false });
});

/** A repeated parameter counts as missing. */
const parameter = z.string().optional().catch(undefined);
const parameters = z.object({
  id_token_hint: parameter,
  client_id: parameter,
  post_logout_redirect_uri: parameter,
  state: parameter,
});

/**
 * Sends the browser to the account page, which has the session cookie. The parameters are in the fragment, so that no log
 * and no `Referer` has the ID token.
 */
export async function toLogoutPage(ctx: Context): Promise<void> {
  const given = ctx.method === 'GET' ? ctx.query : hasBody(ctx.req) ? await parseBody(ctx, await parser()) : {};
  const known = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters.catch({}).parse(given))) if (value) known.set(name, value);
  ctx.status = 303;
  ctx.redirect(`${pagePaths.logOut}#${known}`);
}
