import { timingSafeEqual } from 'node:crypto';

/** Standard base64, padded or not. Python's passlib writes `.` for `+`. */
export const base64 = '[A-Za-z0-9+/.]+={0,2}';

export const fromBase64 = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64');

/** Whether a text is canonical base64 without padding, the only form that strict decoders accept. */
export const isStrictBase64 = (text: string): boolean =>
  Buffer.from(text, 'base64').toString('base64').replace(/=+$/, '') === text;

/**
 * Accepted lengths of derived keys. A truncated key, for example from a short column, would match several passwords.
 */
const wholeLengths: readonly number[] = [20, 32, 64];

export const isWholeKey = (key: Buffer): boolean => wholeLengths.includes(key.length);

/** Compares in constant time. */
export const isSameHash = (computed: Buffer, stored: Buffer): boolean =>
  computed.length === stored.length && timingSafeEqual(computed, stored);
