import { z } from 'zod';
import { hashOf, newToken } from '../../../lib/random-token.ts';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';

/** Also the timeout in the options for the browser. */
export const CHALLENGE_LIFE_MS = 5 * 60_000;

/** `upgrade`: after a login by password the browser adds a passkey by itself, without asking the user. */
export type RegistrationMode = 'registration' | 'upgrade';

/** The scope of a challenge: valid for nothing else. */
export interface ChallengeScope {
  purpose: 'login' | 'second-factor' | 'reauthenticate' | RegistrationMode;
  /** The id of the requesting browser. */
  browser: string;
  /** The user whose passkeys are accepted, if known in advance. */
  userId?: string | undefined;
  /** For registration: the session that adds the passkey. */
  sessionId?: string | undefined;
}

const keyOf = (challenge: string) => `passkey-challenge:${hashOf(challenge)}`;

const storedChallenge = z.object({ scope: z.string() });

const textOf = ({ purpose, browser, userId = '', sessionId = '' }: ChallengeScope): string =>
  JSON.stringify([purpose, hashOf(browser), userId, sessionId]);

/** Pending WebAuthn challenges (Level 3, section 13.4.3). */
export const createPasskeyChallenges = (store: KeyValueStore) => ({
  async open(scope: ChallengeScope): Promise<string> {
    const challenge = newToken();
    await store.set(keyOf(challenge), { scope: textOf(scope) }, { ttlMs: CHALLENGE_LIFE_MS });
    return challenge;
  },

  /** Whether an open challenge has exactly this scope. True at most once, even for concurrent callers. */
  take: async (challenge: string, scope: ChallengeScope): Promise<boolean> =>
    (await store.take(keyOf(challenge), storedChallenge))?.scope === textOf(scope),
});

export type PasskeyChallenges = ReturnType<typeof createPasskeyChallenges>;
