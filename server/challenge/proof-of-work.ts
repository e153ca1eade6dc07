/**
 * ALTCHA's proof of work, version 1, with SHA-256: the solver finds the number that was hashed with the salt. altcha-lib
 * solves and verifies the same (test/unit/challenge); its verification takes 104 µs of CPU and waits for a thread of
 * the pool that also hashes passwords, this one 6 µs.
 */
import { createHash, createHmac, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { ProofOfWork } from '../errors.ts';

const ALGORITHM = 'SHA-256';
const SALT_BYTES = 12;
export const LIFE_MS = 5 * 60_000;
/** The longest time in which instances accept a challenge, if their clocks differ by up to LIFE_MS. */
export const USABLE_MS = 3 * LIFE_MS;

/** Longer than any payload of ours; nothing longer is decoded. */
const MAX_PAYLOAD = 1024;

/** One spelling only: the number follows the last `&`, so no digit can move between salt and number. */
const SALT = /^[0-9a-f]{24}\?for=([A-Za-z.]{1,64})&expires=(\d{10,12})&$/;
const hex = z.string().regex(/^[0-9a-f]{64}$/);
const payload = z.object({
  algorithm: z.literal(ALGORITHM),
  challenge: hex,
  number: z.int().min(0),
  salt: z.string().max(128),
  signature: hex,
});

/** Keys: the current one first, then former ones, which are still accepted. */
export type Keys = readonly [string, ...string[]];

const challengeOf = (salt: string, number: number) => createHash('sha256').update(`${salt}${number}`).digest('hex');
const sign = (key: string, challenge: string) => createHmac('sha256', key).update(challenge).digest('hex');

/** A challenge for one procedure. Solving it takes at most `maxnumber` hashes. */
export function issue([key]: Keys, procedure: string, maxnumber: number): ProofOfWork {
  const expires = Math.floor((Date.now() + LIFE_MS) / 1000);
  const salt = `${randomBytes(SALT_BYTES).toString('hex')}?for=${procedure}&expires=${expires}&`;
  const challenge = challengeOf(salt, randomInt(maxnumber + 1));
  return { algorithm: ALGORITHM, challenge, maxnumber, salt, signature: sign(key, challenge) };
}

/** The challenge that a payload (base64) solves for the procedure, as a key for its one use. Undefined if it is not valid. */
export function solvedBy(keys: Keys, procedure: string, text: string): string | undefined {
  const { data: solution } = payload.safeParse(decode(text));
  if (!solution) return undefined;
  const { salt, number, challenge, signature } = solution;
  const [, solved, expires] = SALT.exec(salt) ?? [];
  const leftMs = Number(expires) * 1000 - Date.now();
  if (solved !== procedure || leftMs < 0 || leftMs > 2 * LIFE_MS) return undefined;
  if (challengeOf(salt, number) !== challenge) return undefined;
  const given = Buffer.from(signature);
  return keys.some((key) => timingSafeEqual(Buffer.from(sign(key, challenge)), given)) ? challenge : undefined;
}

function decode(text: string): unknown {
  if (text.length > MAX_PAYLOAD) return undefined;
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString());
  } catch {
    return undefined;
  }
}
