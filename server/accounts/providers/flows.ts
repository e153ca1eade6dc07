import { timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { hashOf } from '../../lib/random-token.ts';
import type { FlowSecrets } from '../../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';

/** interface.md section 8. */
export const STATE_LIFE_MS = 10 * 60 * 1000;

/**
 * The purposes of a flow; login.ts has their outcomes. `session`: it needs the session in which it begins (`recent`:
 * with a recent credential). `asksLogin`: the user must log in at the provider again.
 */
export const flowPurposes = {
  login: { session: undefined, asksLogin: false },
  restore: { session: undefined, asksLogin: false },
  link: { session: 'recent', asksLogin: false },
  reauthenticate: { session: 'any', asksLogin: true },
} as const satisfies Record<string, { session: 'recent' | 'any' | undefined; asksLogin: boolean }>;

export type FlowPurpose = keyof typeof flowPurposes;

/** The session in which a flow began. A browser returning from a provider does not send Strict cookies. */
interface FlowOwner {
  userId: string;
  sessionId: string;
  /** The user's session epoch at that time. */
  epoch: number;
}

/** A login or other flow that is open at a provider. */
export interface Flow extends FlowSecrets {
  purpose: FlowPurpose;
  /**
   * The hash of the browser id, if the user began the flow on a page of this service. Undefined if another site or a
   * mailed link began it: then the user has not confirmed the request.
   */
  asker?: string | undefined;
  /** Only for a purpose with a session. */
  owner?: FlowOwner | undefined;
  /** The page of this service to go to at the end. Default: the page of the purpose. */
  page?: string | undefined;
  /**
   * Where the browser goes after success, validated by `server/shared/return-to.ts`. After a failure it is passed to
   * the page.
   */
  returnTo?: string | undefined;
  /** Milliseconds since 1970. */
  begunAt: number;
}

/** The values that begin a flow. It can end only in the browser with this id. */
export type NewFlow = Omit<Flow, 'asker' | 'begunAt'> & { browser: string; isAskedFor: boolean };

const text = z.string();
/** Flows begun by the previous release are logins without the newer fields; their asker is unknown. */
const storedFlow = z.object({
  provider: text,
  redirectUri: text,
  nonce: text,
  codeVerifier: text,
  purpose: z.enum(Object.keys(flowPurposes) as FlowPurpose[]).default('login'),
  browser: text.optional(),
  isAskedFor: z.boolean().default(false),
  owner: z.object({ userId: text, sessionId: text, epoch: z.number() }).optional(),
  page: text.optional(),
  returnTo: text.optional(),
  begunAt: z.number().default(0),
}) satisfies z.ZodType<Omit<Flow, 'asker'>>;

const keyOf = (state: string) => `login-flow:${hashOf(state)}`;

/** The previous release knows only logins. Any other flow looks to it like one at an unknown provider. */
const storedName = (provider: ProviderName, purpose: FlowPurpose) =>
  purpose === 'login' ? provider : `${purpose}:${provider}`;

/** Whether the state of the callback equals the cookie's, in constant time. */
export const isSameState = (state: string, cookieState: string): boolean =>
  timingSafeEqual(Buffer.from(hashOf(state)), Buffer.from(hashOf(cookieState)));

/** The open flows at providers. */
export const createLoginFlows = (store: KeyValueStore) => ({
  async open(state: string, provider: ProviderName, { browser, ...flow }: NewFlow): Promise<void> {
    const stored: z.input<typeof storedFlow> = {
      ...flow,
      browser: hashOf(browser),
      provider: storedName(provider, flow.purpose),
      begunAt: Date.now(),
    };
    await store.set(keyOf(state), stored, { ttlMs: STATE_LIFE_MS });
  },

  /**
   * Takes the flow of this state, once; else INVALID_STATE. Compares the provider against mix-up (RFC 9700 section
   * 4.4), and the browser, because a sibling host can plant the state cookie (RFC 6265 section 8.6).
   */
  async take(state: string, { provider, browser: id }: { provider: ProviderName; browser: string }): Promise<Flow> {
    const stored = await store.take(keyOf(state), storedFlow);
    if (stored === null) throw new ServiceError('INVALID_STATE');
    const { provider: begunAtProvider, browser, isAskedFor, ...flow } = stored;
    if (begunAtProvider !== storedName(provider, flow.purpose)) throw new ServiceError('INVALID_STATE');
    if (browser !== undefined && browser !== hashOf(id)) throw new ServiceError('INVALID_STATE');
    return { ...flow, asker: isAskedFor ? browser : undefined };
  },
});
