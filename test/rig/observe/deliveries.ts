import { Webhook } from 'standardwebhooks';
import type { Received } from '../servers/receiver.ts';

/** A stored event. */
export interface StoredEvent {
  id: string;
  number: number;
  userId: string;
}

/** An answered delivery of a receiver. */
export type Answered = Pick<Received, 'id' | 'headers' | 'body' | 'event'>;

/**
 * What a receiver got that it must not, or did not get: an event that is missing, one that came before an earlier one of its
 * user, one event under two ids, and a delivery that the secret has not signed.
 */
export function deliveryViolations(
  events: readonly StoredEvent[],
  answered: readonly Answered[],
  secret: string,
): string[] {
  const webhook = new Webhook(secret);
  const found: string[] = [];
  const first = new Map<number, Answered>();
  const latest = new Map<string, number>();
  for (const delivery of answered) {
    const { id, headers, body, event } = delivery;
    // Not `verify`: it refuses what arrived more than five minutes ago.
    const signed = webhook.sign(id, new Date(Number(headers['webhook-timestamp']) * 1000), body);
    if (!headers['webhook-signature']?.split(' ').includes(signed)) found.push(`unsigned: ${id}`);
    if (event.id !== id || (first.get(event.number)?.id ?? id) !== id) found.push(`another id: ${id}`);
    if (first.has(event.number)) continue;
    first.set(event.number, delivery);
    const { userId } = event.data;
    const before = latest.get(userId) ?? 0;
    if (event.number < before) found.push(`swapped: ${event.number} of ${userId} after ${before}`);
    latest.set(userId, Math.max(before, event.number));
  }
  const missing = events.filter(({ number }) => !first.has(number));
  return [...found, ...missing.map(({ number, userId }) => `lost: ${number} of ${userId}`)];
}
