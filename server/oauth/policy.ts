import type { interactionPolicy, KoaContextWithOIDC } from 'oidc-provider';
import { z } from 'zod';
import { resourceScopesOf } from './clients.ts';
import { wordsIn } from './grants.ts';
import { defaultScopes } from './scopes.ts';

/** What the account page needs to know about an authorization request, beside its parameters. */
export const requestDetails = z.object({
  /** The hash of the browser that began it. */
  browser: z.string(),
  /** `prompt=none`: nothing may be shown. */
  isSilent: z.boolean(),
  /** The user that the application expects (`id_token_hint`). */
  subject: z.string().optional(),
});

/**
 * Every authorization request goes to the account page, which knows the session; the library sees it again with a
 * result. So `prompt=none` is answered there too, and the library must not answer it first.
 */
export function createPolicy(
  { base, Prompt, Check }: typeof interactionPolicy,
  browserOf: (ctx: KoaContextWithOIDC) => string,
): interactionPolicy.DefaultPolicy {
  const silent = new WeakSet<KoaContextWithOIDC>();
  const isAsked = (ctx: KoaContextWithOIDC): boolean => {
    const { params, result, prompts, client } = ctx.oidc;
    if (result !== undefined) return false;
    if (params && client)
      params['scope'] ??= defaultScopes(
        [...wordsIn(client.scope), ...resourceScopesOf(client)],
        params['resource'],
      ).join(' ');
    if (params && prompts.has('none')) {
      silent.add(ctx);
      // The library makes `none login` of max_age=0.
      prompts.delete('none');
      params['prompt'] = [...prompts].join(' ') || undefined;
    }
    return true;
  };
  const detailsOf = (ctx: KoaContextWithOIDC): z.output<typeof requestDetails> => {
    const subject = ctx.oidc.entities.IdTokenHint?.payload['sub'];
    return {
      browser: browserOf(ctx),
      isSilent: silent.has(ctx),
      ...(typeof subject === 'string' && { subject }),
    };
  };
  const policy = base();
  const asked = new Check('account_page', 'the account page decides', 'login_required', isAsked, detailsOf);
  policy.add(new Prompt({ name: 'account', requestable: false }, asked), 0);
  return policy;
}
