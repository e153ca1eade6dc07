import { callbackPath } from '../../config/identity-providers.ts';
import { ServiceError } from '../../errors.ts';
import { newToken } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { CallbackParameters, IdentityProvider, ProvidedIdentity } from '../../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import type { Log } from '../../telemetry/log.ts';
import { counted, type LoginRefusals, type LoginSteps, type SecondFactors } from '../login/index.ts';
import type { KnownDevices, LoginRequest, Sessions } from '../sessions/index.ts';
import { createIdentities } from './admission.ts';
import type { AdmissionNeeds } from './admission-rules.ts';
import { createLoginFlows, type FlowPurpose, flowPurposes, isSameState, type NewFlow } from './flows.ts';
import type { IdentityLinks } from './links.ts';
import type { FlowEnd, FlowOutcome, Invited, ReturnedIdentity } from './outcomes.ts';
import { createProviderReauthentication } from './reauthentication.ts';

/** The request of a browser that begins a flow. */
interface FlowStart extends Pick<NewFlow, 'purpose' | 'owner' | 'browser' | 'isAskedFor' | 'page' | 'returnTo'> {
  /** The name of the provider: text of the request. */
  provider: string;
  /** The URL of this service at which the browser begins, gets its cookie, and returns. */
  ownUrl: string;
  clientAddress: string;
}

/** The URL for the browser and the state for its cookie, or why the provider cannot be used. */
type Beginning = { result: 'begun'; url: string; state: string } | { result: 'failed' | 'proves-no-login' };

/** The request of a returning browser. */
interface Callback extends Omit<CallbackParameters, 'state'> {
  request: LoginRequest;
  /** The name in the callback URL: text of the request. */
  provider: string;
  state: string | undefined;
  /** The state in the browser's cookie for this provider. */
  cookieState: string | undefined;
  /** The id of the browser. */
  browser: string;
}

interface Parts extends AdmissionNeeds {
  database: Database;
  limits: Limits;
  sessions: Pick<Sessions, 'reauthenticate'>;
  links: Pick<IdentityLinks, 'link'>;
  /** By name. Empty without configured or embedded providers. */
  identityProviders: ReadonlyMap<ProviderName, IdentityProvider>;
  completeFirstFactor: LoginSteps['completeFirstFactor'];
  recordRefusal: LoginRefusals;
  secondFactors: SecondFactors;
  devices: Pick<KnownDevices, 'mark'>;
  store: KeyValueStore;
  log: Log;
}

/** Flows through external identity providers. Both steps reject with NOT_FOUND for an unknown provider. */
export const createProviderLogin = (parts: Parts) => {
  const { identityProviders, limits, completeFirstFactor, recordRefusal, devices, store, log } = parts;
  const identities = createIdentities(parts);
  const flows = createLoginFlows(store);

  const isProvider = (name: string): name is ProviderName => identityProviders.has(name as ProviderName);

  const providerNamed = (name: ProviderName): IdentityProvider => {
    const provider = identityProviders.get(name);
    if (!provider) throw new ServiceError('NOT_FOUND');
    return provider;
  };

  const failedAt = (provider: ProviderName) => (error: unknown) => {
    log.warn({ err: error, provider }, 'a login through the identity provider failed');
    return { result: 'failed' } as const;
  };

  /** The identity was unlinked, or its user blocked, between admission and session. */
  const voidSince = (provider: ProviderName) => (error: unknown) => {
    if (error instanceof ServiceError && error.code === 'ACCOUNT_BLOCKED') return { result: 'blocked' } as const;
    if (error instanceof ServiceError && error.code === 'UNAUTHENTICATED') return failedAt(provider)(error);
    throw error;
  };

  /** The user has linked too many identities recently. */
  const failedIfLimited = (provider: ProviderName) => (error: unknown) => {
    if (error instanceof ServiceError && error.code === 'RATE_LIMITED') return failedAt(provider)(error);
    throw error;
  };

  /** Only the purpose `restore` restores a deleted account. */
  const logIn = async ({ identity, flow, provider, request }: ReturnedIdentity): Promise<FlowOutcome & Invited> => {
    const { asker, returnTo } = flow;
    const restores = flow.purpose === 'restore';
    const admission = await identities.admit(identity, { provider, asker, caller: request, restores, returnTo });
    if (admission.result === 'unverified') return { result: 'verification-sent' };
    if (admission.result === 'unusable') {
      return failedAt(provider)(
        new Error('subject or email address cannot be used, or its user has too many identities'),
      );
    }
    if (admission.result === 'blocked') recordRefusal(admission.email, 'blocked', request);
    if (admission.result !== 'admitted') return { result: admission.result };
    const { account, identityId, isNew, invitedTo } = admission;
    const named = providerNamed(provider);
    const credential = { method: provider, identityId, ageMs: ageOf(identity, named) };
    const use = { restores, skipSecondFactor: named.isTrustedForMfa };
    // The device that created the account is known, unless another site began the login.
    const login =
      isNew && flow.asker !== undefined
        ? { ...request, deviceCookie: devices.mark(request.deviceCookie, account) }
        : request;
    const entry = await completeFirstFactor(account, credential, use, login).catch(voidSince(provider));
    return { ...entry, invitedTo };
  };

  /** The outcome of each purpose after the provider has stated an identity. */
  const ends: Record<FlowPurpose, (returned: ReturnedIdentity) => Promise<FlowOutcome & Invited>> = {
    login: logIn,
    restore: logIn,
    link: parts.links.link,
    reauthenticate: createProviderReauthentication(parts),
  };

  const finish = async ({
    provider,
    state,
    cookieState,
    request,
    browser,
    ...callback
  }: Callback & { provider: ProviderName }): Promise<FlowEnd> => {
    const idp = providerNamed(provider);
    const isOwn = state !== undefined && cookieState !== undefined && isSameState(state, cookieState);
    const here = { provider, browser };
    if (callback.error === 'access_denied') {
      const flow = isOwn ? await flows.take(state, here).catch(undefinedIfInvalid) : undefined;
      const { purpose, page, returnTo } = flow ?? { purpose: 'login' };
      return { result: 'cancelled', wasOpen: flow !== undefined, purpose, page, returnTo };
    }
    if (!isOwn) throw new ServiceError('INVALID_STATE');
    const flow = await flows.take(state, here);
    const identity = await idp.finish({ ...callback, state }, flow).catch(failedAt(provider));
    const { purpose, page, returnTo } = flow;
    const outcome =
      'result' in identity
        ? identity
        : await ends[purpose]({ identity, flow, provider, request }).catch(failedIfLimited(provider));
    return { ...outcome, purpose, page, returnTo };
  };

  return {
    async begin({ provider, ownUrl, clientAddress, ...flow }: FlowStart): Promise<Beginning> {
      if (!isProvider(provider)) throw new ServiceError('NOT_FOUND');
      const idp = providerNamed(provider);
      const { asksLogin } = flowPurposes[flow.purpose];
      if (asksLogin && !idp.provesLogin) return { result: 'proves-no-login' };
      await limits.enforce('idpStart', clientAddress);
      const state = newToken();
      const redirectUri = ownUrl + callbackPath(provider);
      const begun = await idp.begin({ state, redirectUri, asksLogin }).catch(failedAt(provider));
      if ('result' in begun) return begun;
      await flows.open(state, provider, { ...begun.secrets, ...flow });
      return { result: 'begun', url: begun.url, state };
    },

    /**
     * INVALID_STATE, before any other check, unless this browser has an open flow at this provider. Exception: a login
     * cancelled at the provider (RFC 6749 section 4.1.2.1), which changes nothing without a flow.
     */
    async finish({ provider, ...returned }: Callback): Promise<FlowEnd> {
      // Before the count: an unknown provider gets no counter of its own.
      if (!isProvider(provider)) throw new ServiceError('NOT_FOUND');
      return counted(provider, finish({ ...returned, provider }), isLogin);
    },
  };
};

/**
 * How long ago the user has logged in at the provider, which may remember earlier logins. Undefined if the provider
 * cannot force a new login: otherwise such a session would never count as recent.
 */
const ageOf = ({ loggedInAt }: ProvidedIdentity, { provesLogin }: IdentityProvider): number | undefined =>
  provesLogin && loggedInAt !== undefined ? Math.max(Date.now() - loggedInAt, 0) : undefined;

const isLogin = ({ purpose }: FlowEnd): boolean => purpose === 'login' || purpose === 'restore';

const undefinedIfInvalid = (error: unknown): undefined => {
  if (!(error instanceof ServiceError && error.code === 'INVALID_STATE')) throw error;
};
