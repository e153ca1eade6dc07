import type { Context } from 'koa';
import { z } from 'zod';
import { pagePaths } from '../../shared/page-paths.ts';
import { formParameters } from '../bodies/form-parameters.ts';

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
  const known = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters.parse(await formParameters(ctx))))
    if (value) known.set(name, value);
  ctx.status = 303;
  ctx.redirect(`${pagePaths.logOut}#${known}`);
}
