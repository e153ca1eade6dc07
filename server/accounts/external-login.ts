import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import type {
  CallbackParameters,
  FlowSecrets,
  IdentityProvider,
  ProvidedIdentity,
} from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { Deps } from './deps.ts';
import { createIdentities } from './identities.ts';
import type { Login } from './sessions.ts';

/** interface.md section 8. */
export const STATE_LIFE_MS = 10 * 60 * 1000;

/** The outcome of a login through the provider. `failed`: the cause is in the log. */
export type ExternalLogin =
  | { result: 'logged-in'; login: Login }
  /** `wasOpen`: this browser had begun the login, which is over now. */
  | { result: 'cancelled'; wasOpen: boolean }
  | { result: 'failed' | 'email-unverified' | 'verification-sent' };

/** The stored part of a flow, under the hash of its state, until the browser comes back. */
interface StoredFlow extends FlowSecrets {
  provider: string;
}

interface Returned extends Omit<CallbackParameters, 'state'> {
  state: string | undefined;
  /** The state that the browser's cookie holds. */
  cookieState: string | undefined;
  formerToken: string | undefined;
  /** The id of the browser. */
  browser: string;
}

const digest = (state: string) => createHash('sha256').update(state).digest();
const keyOf = (state: string) => `login-flow:${digest(state).toString('base64url')}`;

/** Whether the browser that comes back is the one that began the flow; compared in constant time. */
const isSame = (state: string, cookieState: string) => timingSafeEqual(digest(state), digest(cookieState));

interface Parts {
  store: KeyValueStore;
  /** Undefined where no provider is configured or embedded. */
  provider: IdentityProvider | undefined;
  providerName: string;
  /** Below one of our own base addresses. */
  callbackPath: string;
  log: Log;
}

/** Login through an external identity provider. Without one, both procedures reject with NOT_FOUND. */
export const createExternalLogin = (deps: Deps, { store, provider, providerName, callbackPath, log }: Parts) => {
  const identities = createIdentities(deps, providerName);

  const theProvider = (): IdentityProvider => {
    if (!provider) throw new ServiceError('NOT_FOUND');
    return provider;
  };

  const failed = (error: unknown) => {
    log.warn({ err: error, provider: providerName }, 'a login through the identity provider failed');
    return { result: 'failed' } as const;
  };

  /** The flow that was begun with this state, at most once: a repeated callback finds none. */
  const takeFlow = async (state: string): Promise<StoredFlow> => {
    const stored = await store.take(keyOf(state));
    const flow = stored === null ? undefined : (JSON.parse(stored) as StoredFlow);
    if (flow?.provider !== providerName) throw new ServiceError('INVALID_STATE');
    return flow;
  };

  const logIn = async (
    identity: ProvidedIdentity,
    { formerToken, browser }: Pick<Returned, 'formerToken' | 'browser'>,
  ): Promise<ExternalLogin> => {
    const admission = await identities.admit(identity, browser);
    if (admission.result === 'unverified') return { result: 'verification-sent' };
    if (admission.result === 'email-unverified') return { result: 'email-unverified' };
    if (admission.result === 'unusable') return failed(new Error('subject or email address cannot be used'));
    const { account: user } = admission;
    return { result: 'logged-in', login: await deps.sessions.openSession(user, formerToken) };
  };

  return {
    /**
     * Answers where to send the browser, and the state for its cookie; undefined if the provider cannot be reached. The
     * browser comes back to `ownUrl`, the address of ours at which it began and has that cookie.
     */
    async beginExternalLogin({
      ownUrl,
      clientAddress,
    }: {
      ownUrl: string;
      clientAddress: string;
    }): Promise<{ url: string; state: string } | undefined> {
      const theirs = theProvider();
      await deps.limits.enforce('idpStart', clientAddress);
      const state = randomBytes(32).toString('base64url');
      const begun = await theirs.begin({ state, redirectUri: ownUrl + callbackPath }).catch(failed);
      if ('result' in begun) return undefined;
      const flow: StoredFlow = { ...begun.secrets, provider: providerName };
      await store.set(keyOf(state), JSON.stringify(flow), { ttlMs: STATE_LIFE_MS });
      return { url: begun.url, state };
    },

    /**
     * Rejects with INVALID_STATE, before any other check, unless this browser began a flow that is still open. But a
     * cancelled login at the provider (RFC 6749 section 4.1.2.1) is answered as such in any case: without such a flow
     * nothing changes.
     */
    async finishExternalLogin({
      state,
      cookieState,
      formerToken,
      browser,
      ...callback
    }: Returned): Promise<ExternalLogin> {
      const theirs = theProvider();
      const isTheirs = state !== undefined && cookieState !== undefined && isSame(state, cookieState);
      if (callback.error === 'access_denied') {
        if (isTheirs) await store.delete(keyOf(state));
        return { result: 'cancelled', wasOpen: isTheirs };
      }
      if (!isTheirs) throw new ServiceError('INVALID_STATE');
      const { provider: _, ...secrets } = await takeFlow(state);
      const outcome = await theirs.finish({ ...callback, state }, secrets).catch(failed);
      return 'result' in outcome ? outcome : logIn(outcome, { formerToken, browser });
    },
  };
};
