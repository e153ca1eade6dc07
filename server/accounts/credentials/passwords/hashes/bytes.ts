import { timingSafeEqual } from 'node:crypto';

/** Standard base64, padded or not, in which Python's passlib writes `.` for `+`. */
export const base64 = '[A-Za-z0-9+/.]+={0,2}';

export const fromBase64 = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64');

/**
 * The lengths of derived keys that are stored in full: of one that was cut off, by a column that is too short for example, the rest
 * would be right for more passwords than one.
 */
const wholeLengths: readonly number[] = [20, 32, 64];

export const isWholeKey = (key: Buffer): boolean => wholeLengths.includes(key.length);

/** Compares in constant time. */
export const isSameHash = (computed: Buffer, stored: Buffer): boolean =>
  computed.length === stored.length && timingSafeEqual(computed, stored);
