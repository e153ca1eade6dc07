import { ServiceError } from '../../errors.ts';

/** A part of a path, decoded (RFC 3986 section 2.1). One with a malformed encoding names nothing: NOT_FOUND. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new ServiceError('NOT_FOUND', { cause: error });
  }
}
