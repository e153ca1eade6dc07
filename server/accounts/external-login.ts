import { callbackPath } from '../config/identity-providers.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { CallbackParameters, IdentityProvider, ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';
import type { FlowEnd, FlowOutcome, ReturnedIdentity } from './flow-outcomes.ts';
import { createIdentities } from './identities.ts';
import { createIdentityLinks } from './identity-links.ts';
import {
  createLoginFlows,
  type FlowOwner,
  type FlowPurpose,
  flowPurposes,
  isSameState,
  newState,
} from './login-flows.ts';
import type { LoginRefusals } from './login-refusals.ts';
import type { LoginSteps } from './login-steps.ts';
import { createProviderReauthentication } from './provider-reauthentication.ts';
import type { SecondFactors } from './second-factors.ts';
import type { LoginRequest } from './sessions.ts';

/** The request of a browser that begins a flow. */
interface Departure {
  /** The name of the provider. */
  provider: string;
  /** `session` and `browser` for a purpose that is about the user of a session. */
  purpose: FlowPurpose;
  owner?: Omit<FlowOwner, 'browser'> | undefined;
  /** The id of the browser. */
  browser: string;
  page?: string | undefined;
  returnTo?: string | undefined;
  /** The address of ours at which the browser begins and gets its cookie; it comes back there. */
  ownUrl: string;
  clientAddress: string;
}

/** Where to send the browser, and the state for its cookie; or why the provider cannot be asked. */
export type Beginning = { result: 'begun'; url: string; state: string } | { result: 'failed' | 'proves-no-login' };

/** The request of a browser that comes back. */
interface Return extends Omit<CallbackParameters, 'state'> {
  request: LoginRequest;
  /** The name of the provider whose callback it is. */
  provider: string;
  state: string | undefined;
  /** The state that the browser's cookie for this provider holds. */
  cookieState: string | undefined;
  /** The id of the browser. */
  browser: string;
}

interface Parts {
  /** By name. Empty where none is configured or embedded. */
  identityProviders: ReadonlyMap<string, IdentityProvider>;
  enter: LoginSteps['enter'];
  recordRefusal: LoginRefusals;
  secondFactors: SecondFactors;
  store: KeyValueStore;
  log: Log;
}

/**
 * Logins through external identity providers, and what else users do there. Both steps reject with NOT_FOUND at a
 * provider that there is not.
 */
export const createExternalLogin = (
  deps: Deps,
  { identityProviders, enter, recordRefusal, secondFactors, store, log }: Parts,
) => {
  const identities = createIdentities(deps);
  const links = createIdentityLinks(deps, { providers: [...identityProviders.keys()] });
  const flows = createLoginFlows(store);

  const providerNamed = (name: string): IdentityProvider => {
    const provider = identityProviders.get(name);
    if (!provider) throw new ServiceError('NOT_FOUND');
    return provider;
  };

  const failedAt = (provider: string) => (error: unknown) => {
    log.warn({ err: error, provider }, 'a login through the identity provider failed');
    return { result: 'failed' } as const;
  };

  /** The identity was unlinked, or its user blocked, between its admission and the session. */
  const voidSince = (provider: string) => (error: unknown) => {
    if (error instanceof ServiceError && error.code === 'ACCOUNT_BLOCKED') return { result: 'blocked' } as const;
    if (error instanceof ServiceError && error.code === 'UNAUTHENTICATED') return failedAt(provider)(error);
    throw error;
  };

  /** A login restores a deleted account only where that is its purpose. */
  const logIn = async ({ identity, flow, provider, request, browser }: ReturnedIdentity): Promise<FlowOutcome> => {
    const restores = flow.purpose === 'restore';
    const admission = await identities.admit(identity, { provider, browser, caller: request, restores });
    if (admission.result === 'unverified') return { result: 'verification-sent' };
    if (admission.result === 'unusable') {
      return failedAt(provider)(new Error('subject or email address cannot be used'));
    }
    if (admission.result === 'blocked') recordRefusal(admission.email, 'blocked', request);
    if (admission.result !== 'admitted') return { result: admission.result };
    const { account, identityId } = admission;
    const named = providerNamed(provider);
    const credential = { method: provider, identityId, ageMs: ageOf(identity, named) };
    const use = { restores, isEnough: named.isTrustedForMfa };
    return enter(account, credential, use, request).catch(voidSince(provider));
  };

  /** What each purpose comes to once the provider has stated an identity. */
  const ends: Record<FlowPurpose, (returned: ReturnedIdentity) => Promise<FlowOutcome>> = {
    login: logIn,
    restore: logIn,
    link: links.link,
    reauthenticate: createProviderReauthentication(deps, { secondFactors, identityProviders }),
  };

  return {
    listIdentities: links.list,
    unlinkIdentity: links.unlink,

    /** The names of the providers, in the order of the configuration. */
    identityProviders: [...identityProviders.keys()],
    /** Those at which a user can give a credential again. */
    reauthenticatingProviders: [...identityProviders]
      .filter(([, { provesLogin }]) => provesLogin)
      .map(([name]) => name),

    async beginExternalLogin({
      provider,
      purpose,
      owner,
      browser,
      page,
      returnTo,
      ownUrl,
      clientAddress,
    }: Departure): Promise<Beginning> {
      const asked = providerNamed(provider);
      const { asksLogin } = flowPurposes[purpose];
      if (asksLogin && !asked.provesLogin) return { result: 'proves-no-login' };
      await deps.limits.enforce('idpStart', clientAddress);
      const state = newState();
      const redirectUri = ownUrl + callbackPath(provider);
      const begun = await asked.begin({ state, redirectUri, asksLogin }).catch(failedAt(provider));
      if ('result' in begun) return begun;
      const bound = owner && { ...owner, browser: browserHash(browser) };
      await flows.open(state, provider, { ...begun.secrets, purpose, owner: bound, page, returnTo });
      return { result: 'begun', url: begun.url, state };
    },

    /**
     * Rejects with INVALID_STATE, before any other check, unless this browser began a flow at this provider that is
     * still open. But a cancelled login at the provider (RFC 6749 section 4.1.2.1) is answered as such in any case:
     * without such a flow nothing changes.
     */
    async finishExternalLogin({
      provider,
      state,
      cookieState,
      request,
      browser,
      ...callback
    }: Return): Promise<FlowEnd> {
      const asked = providerNamed(provider);
      const isOwn = state !== undefined && cookieState !== undefined && isSameState(state, cookieState);
      if (callback.error === 'access_denied') {
        const flow = isOwn ? await flows.take(state, provider).catch(undefinedIfInvalid) : undefined;
        const { purpose, page, returnTo } = flow ?? { purpose: 'login' };
        return { result: 'cancelled', wasOpen: isOwn, purpose, page, returnTo };
      }
      if (!isOwn) throw new ServiceError('INVALID_STATE');
      const flow = await flows.take(state, provider);
      // The state cookie could have been planted by a sibling host, with a state of an attacker's own session.
      if (flow.owner && flow.owner.browser !== browserHash(browser)) throw new ServiceError('INVALID_STATE');
      const identity = await asked.finish({ ...callback, state }, flow).catch(failedAt(provider));
      const { purpose, page, returnTo } = flow;
      const outcome =
        'result' in identity ? identity : await ends[purpose]({ identity, flow, provider, request, browser });
      return { ...outcome, purpose, page, returnTo };
    },
  };
};

/**
 * How long ago the user has logged in at the provider, which may have remembered that. A provider that cannot make the user
 * log in anew is not asked: the session would never count as one with a recent credential.
 */
const ageOf = ({ loggedInAt }: ProvidedIdentity, { provesLogin }: IdentityProvider): number | undefined =>
  provesLogin && loggedInAt !== undefined ? Math.max(Date.now() - loggedInAt, 0) : undefined;

const undefinedIfInvalid = (error: unknown): undefined => {
  if (!(error instanceof ServiceError && error.code === 'INVALID_STATE')) throw error;
};
