import { hash, randomBytes } from 'node:crypto';

/** 256 random bits in base64url. */
export const newToken = (): string => randomBytes(32).toString('base64url');

/** Whether a text has the form of a token. Other texts need no lookup. */
export const isToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

/** The stored form of a token, so that a leaked store gives no access. A random token needs no slow hash. */
export const hashOf = (token: string): string => hash('sha256', token, 'base64url');
