import { setTimeout as delay } from 'node:timers/promises';

/** Longer than looking somebody up, replacing his token and owing him a mail. */
const FLOOR_MS = 100;

/**
 * Runs work whose duration would tell a stranger whether an account exists: the answer never comes sooner than a time that
 * covers all its outcomes (OWASP ASVS 6.3.8).
 */
export async function inConstantTime(work: () => Promise<void>): Promise<void> {
  await Promise.all([work(), delay(FLOOR_MS)]);
}
