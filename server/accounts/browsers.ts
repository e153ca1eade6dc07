import { createHash, randomBytes } from 'node:crypto';

/**
 * A browser is recognized by 256 random bits in a cookie of its own, from the moment it asks for an account until the
 * mailed link expires. Only the hash is stored: the database contains no usable cookie.
 */
export const newBrowserId = (): string => randomBytes(32).toString('base64url');

export const isBrowserId = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

export const browserHash = (id: string): string => createHash('sha256').update(id).digest('base64url');
