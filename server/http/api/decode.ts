import { ServiceError } from '../../errors.ts';

/** Decodes a path segment (RFC 3986 section 2.1). Rejects a malformed encoding with NOT_FOUND. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new ServiceError('NOT_FOUND', { cause: error });
  }
}
