import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream';
import { ServiceError } from '../errors.ts';

/** Whether a body follows the headers (RFC 9112 section 6). */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;

/** Whether the sender disconnected before its body was read to the end: Node throws away the part that had arrived. */
const isCutOff = (req: IncomingMessage) => req.destroyed && !req.readableEnded;

/**
 * Settles as `read` does, and rejects with VALIDATION_FAILED once the sender has disconnected, also if it had before:
 * parsers and decompressors behind a request wait for ever for the rest of a body that was cut off.
 */
export async function receiveBody<T>(req: IncomingMessage, read: () => Promise<T>): Promise<T> {
  const { promise: end, reject } = Promise.withResolvers<never>();
  const stopWatching = finished(req, { writable: false }, (error) => {
    if (error) reject(error);
  });
  try {
    return await Promise.race([read(), end]);
  } catch (error) {
    throw isCutOff(req) ? cutOff(error) : error;
  } finally {
    stopWatching();
  }
}

const cutOff = (cause: unknown) => {
  const message = 'The body was cut off';
  return new ServiceError('VALIDATION_FAILED', { message, details: { body: { message, rule: 'malformed' } }, cause });
};
