import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../errors.ts';
import type { FlowSecrets } from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';

/** interface.md section 8. */
export const STATE_LIFE_MS = 10 * 60 * 1000;

/** What is stored of a flow until the browser comes back. */
interface StoredFlow extends FlowSecrets {
  provider: string;
}

const digest = (state: string) => createHash('sha256').update(state).digest();
/** The store has only the hash of a state, so that a leaked store ends no login. */
const keyOf = (state: string) => `login-flow:${digest(state).toString('base64url')}`;

/** 256 random bits. */
export const newState = (): string => randomBytes(32).toString('base64url');

/** Whether the browser that comes back is the one that began the flow; compared in constant time. */
export const isSameState = (state: string, cookieState: string): boolean =>
  timingSafeEqual(digest(state), digest(cookieState));

/** The logins that have begun at a provider and not ended. */
export const createLoginFlows = (store: KeyValueStore) => ({
  async open(state: string, provider: string, secrets: FlowSecrets): Promise<void> {
    const flow: StoredFlow = { ...secrets, provider };
    await store.set(keyOf(state), JSON.stringify(flow), { ttlMs: STATE_LIFE_MS });
  },

  /**
   * The flow that was begun with this state at this provider, at most once. Rejects with INVALID_STATE: also where the
   * flow was begun at another provider, which could otherwise end a login in the name of this one (RFC 9700 section 4.4).
   */
  async take(state: string, provider: string): Promise<FlowSecrets> {
    const stored = await store.take(keyOf(state));
    const flow = stored === null ? undefined : (JSON.parse(stored) as StoredFlow);
    if (flow?.provider !== provider) throw new ServiceError('INVALID_STATE');
    const { redirectUri, nonce, codeVerifier } = flow;
    return { redirectUri, nonce, codeVerifier };
  },

  cancel: (state: string): Promise<void> => store.delete(keyOf(state)),
});
