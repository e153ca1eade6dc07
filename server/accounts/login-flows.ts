import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../errors.ts';
import type { FlowSecrets } from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';

/** interface.md section 8. */
export const STATE_LIFE_MS = 10 * 60 * 1000;

/**
 * What a flow through a provider can be for; what comes of each when the browser is back is in external-login.ts. `session`:
 * it is about the user of the session in which it begins, and that must be one (`recent`: in which a credential was given
 * lately). `asksLogin`: the user must log in at the provider anew.
 */
export const flowPurposes = {
  login: { session: undefined, asksLogin: false },
  restore: { session: undefined, asksLogin: false },
  link: { session: 'recent', asksLogin: false },
  reauthenticate: { session: 'any', asksLogin: true },
} as const satisfies Record<string, { session: 'recent' | 'any' | undefined; asksLogin: boolean }>;

export type FlowPurpose = keyof typeof flowPurposes;

/** The session in which a flow began. The browser that comes back from a provider sends no Strict cookie. */
export interface FlowOwner {
  userId: string;
  sessionId: string;
  /** The user's session epoch then. */
  epoch: number;
  /** The hash of the id of the browser. */
  browser: string;
}

/** A login, or another flow, that has begun at a provider and not ended. */
export interface Flow extends FlowSecrets {
  purpose: FlowPurpose;
  /** Of a purpose with a session only. */
  owner?: FlowOwner | undefined;
  /** The page of ours where the browser goes in the end; without one that of the purpose. */
  page?: string | undefined;
  /** Where the browser goes after success, as `server/return-to.ts` has admitted it; after a failure the page is told it. */
  returnTo?: string | undefined;
  /** Milliseconds since 1970. */
  begunAt: number;
}

/** Flows that the release before has begun are logins, without the newer fields. */
interface StoredFlow extends FlowSecrets, Partial<Omit<Flow, keyof FlowSecrets>> {
  provider: string;
}

const digest = (state: string) => createHash('sha256').update(state).digest();
/** The store has only the hash of a state, so that a leaked store ends no login. */
const keyOf = (state: string) => `login-flow:${digest(state).toString('base64url')}`;

/** To an instance of the release before, which knows logins only, any other flow is one at a provider that it does not have. */
const storedName = (provider: string, purpose: FlowPurpose) =>
  purpose === 'login' ? provider : `${purpose}:${provider}`;

/** 256 random bits. */
export const newState = (): string => randomBytes(32).toString('base64url');

/** Whether the browser that comes back is the one that began the flow; compared in constant time. */
export const isSameState = (state: string, cookieState: string): boolean =>
  timingSafeEqual(digest(state), digest(cookieState));

/** The flows that have begun at a provider and not ended. */
export const createLoginFlows = (store: KeyValueStore) => ({
  async open(state: string, provider: string, flow: Omit<Flow, 'begunAt'>): Promise<void> {
    const stored: StoredFlow = { ...flow, provider: storedName(provider, flow.purpose), begunAt: Date.now() };
    await store.set(keyOf(state), JSON.stringify(stored), { ttlMs: STATE_LIFE_MS });
  },

  /**
   * The flow that was begun with this state at this provider, at most once. Rejects with INVALID_STATE: also where the
   * flow was begun at another provider, which could otherwise end a login in the name of this one (RFC 9700 section 4.4).
   */
  async take(state: string, provider: string): Promise<Flow> {
    const stored = await store.take(keyOf(state));
    if (stored === null) throw new ServiceError('INVALID_STATE');
    const { provider: begunAtProvider, purpose = 'login', begunAt = 0, ...flow } = JSON.parse(stored) as StoredFlow;
    if (begunAtProvider !== storedName(provider, purpose)) throw new ServiceError('INVALID_STATE');
    return { ...flow, purpose, begunAt };
  },
});
