import { callbackPath } from '../config/identity-providers.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { CallbackParameters, IdentityProvider, ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { Deps } from './deps.ts';
import { createIdentities } from './identities.ts';
import { createLoginFlows, isSameState, newState } from './login-flows.ts';
import type { Login, LoginRequest } from './sessions.ts';

/** The outcome of a login through a provider. `failed`: the cause is in the log. */
export type ExternalLogin =
  | { result: 'logged-in'; login: Login }
  /** `wasOpen`: this browser had begun the login, which is over now. */
  | { result: 'cancelled'; wasOpen: boolean }
  | { result: 'failed' | 'email-unverified' | 'verification-sent' };

/** The request of a browser that begins a login. */
interface Departure {
  /** The name of the provider. */
  provider: string;
  /** The address of ours at which the browser begins and gets its cookie; it comes back there. */
  ownUrl: string;
  clientAddress: string;
}

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
  store: KeyValueStore;
  log: Log;
}

/** Login through external identity providers. Both steps reject with NOT_FOUND at a provider that there is not. */
export const createExternalLogin = (deps: Deps, { identityProviders, store, log }: Parts) => {
  const identities = createIdentities(deps);
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

  const logIn = async (
    identity: ProvidedIdentity,
    { provider, request, browser }: Pick<Return, 'provider' | 'request' | 'browser'>,
  ): Promise<ExternalLogin> => {
    const admission = await identities.admit(identity, { provider, browser });
    if (admission.result === 'unverified') return { result: 'verification-sent' };
    if (admission.result === 'email-unverified') return { result: 'email-unverified' };
    if (admission.result === 'unusable') {
      return failedAt(provider)(new Error('subject or email address cannot be used'));
    }
    const login = await deps.sessions.openSession(admission.account, provider, request);
    return { result: 'logged-in', login };
  };

  return {
    /** The names of the providers, in the order of the configuration. */
    identityProviders: [...identityProviders.keys()],

    /**
     * Answers where to send the browser, and the state for its cookie; undefined if the provider cannot be reached.
     */
    async beginExternalLogin({
      provider,
      ownUrl,
      clientAddress,
    }: Departure): Promise<{ url: string; state: string } | undefined> {
      const asked = providerNamed(provider);
      await deps.limits.enforce('idpStart', clientAddress);
      const state = newState();
      const begun = await asked
        .begin({ state, redirectUri: ownUrl + callbackPath(provider) })
        .catch(failedAt(provider));
      if ('result' in begun) return undefined;
      await flows.open(state, provider, begun.secrets);
      return { url: begun.url, state };
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
    }: Return): Promise<ExternalLogin> {
      const asked = providerNamed(provider);
      const isOwn = state !== undefined && cookieState !== undefined && isSameState(state, cookieState);
      if (callback.error === 'access_denied') {
        if (isOwn) await flows.cancel(state);
        return { result: 'cancelled', wasOpen: isOwn };
      }
      if (!isOwn) throw new ServiceError('INVALID_STATE');
      const secrets = await flows.take(state, provider);
      const outcome = await asked.finish({ ...callback, state }, secrets).catch(failedAt(provider));
      return 'result' in outcome ? outcome : logIn(outcome, { provider, request, browser });
    },
  };
};
