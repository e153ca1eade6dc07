import { hash, randomBytes } from 'node:crypto';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { browserHash } from './browsers.ts';

/** Also how long a browser may ask its user, in the options that it gets. */
export const CHALLENGE_LIFE_MS = 5 * 60_000;

/** What a challenge is for: nothing else can be done with it. */
export interface ChallengeScope {
  purpose: 'login' | 'second-factor' | 'reauthenticate' | 'registration';
  /** The id of the browser that asked for it. */
  browser: string;
  /** The user whose passkeys alone may answer, where that is known before. */
  userId?: string | undefined;
  /** When registering: the session in which the passkey is added. */
  sessionId?: string | undefined;
}

/** The store has only the hash of a challenge, so that a leaked store answers none. */
const keyOf = (challenge: string) => `passkey-challenge:${hash('sha256', challenge, 'base64url')}`;

const stored = ({ purpose, browser, userId = '', sessionId = '' }: ChallengeScope): string =>
  JSON.stringify([purpose, browserHash(browser), userId, sessionId]);

/** The challenges of WebAuthn (Level 3, section 13.4.3) that wait for their answer. */
export const createPasskeyChallenges = (store: KeyValueStore) => ({
  /** 256 random bits, in base64url. */
  async open(scope: ChallengeScope): Promise<string> {
    const challenge = randomBytes(32).toString('base64url');
    await store.set(keyOf(challenge), stored(scope), { ttlMs: CHALLENGE_LIFE_MS });
    return challenge;
  },

  /** Whether the challenge was made for exactly this, and is still open; at most once, to one of several callers. */
  take: async (challenge: string, scope: ChallengeScope): Promise<boolean> =>
    (await store.take(keyOf(challenge))) === stored(scope),
});

export type PasskeyChallenges = ReturnType<typeof createPasskeyChallenges>;
