import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream';
import { ServiceError } from '../../errors.ts';

/** True if a body follows the headers (RFC 9112 section 6). */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;

/** True if the sender disconnected before the end of its body. Node discards the part that had arrived. */
const isCutOff = (req: IncomingMessage) => req.destroyed && !req.readableEnded;

const BROKEN = Symbol('broken');
const broken = new WeakMap<IncomingMessage, ServiceError>();

/** Makes `receiveBody` reject with this error, now or later: the rest of the body cannot arrive. */
export function breakBody(req: IncomingMessage, error: ServiceError): void {
  broken.set(req, error);
  req.emit(BROKEN, error);
}

export const isBroken = (req: IncomingMessage): boolean => broken.has(req);

/** The minimum bytes per window, on average. With Infinity the whole body must arrive within the first window. */
interface Pace {
  windowMs: number;
  bytesPerSecond: number;
}

const paces = {
  small: { windowMs: 60_000, bytesPerSecond: Infinity },
  file: { windowMs: 10_000, bytesPerSecond: 20_000 },
} as const satisfies Record<string, Pace>;

/** Enough for 50 MB at the minimum pace. Less than the hour until the final check of a presigned address. */
export const MAX_BODY_MS = 45 * 60_000;

/**
 * Settles like `read`; parsers wait forever for the rest of a body that was cut off. Rejects with VALIDATION_FAILED after a
 * disconnect, earlier or later, and with REQUEST_TIMEOUT below the pace.
 */
export async function receiveBody<T>(
  req: IncomingMessage,
  read: () => Promise<T>,
  pace: keyof typeof paces = 'small',
): Promise<T> {
  const { promise: end, reject } = Promise.withResolvers<never>();
  const stopWatching = finished(req, { writable: false }, (error) => {
    if (error) reject(error);
  });
  const stopMeasuring = whenTooSlow(req, paces[pace], () => reject(new ServiceError('REQUEST_TIMEOUT')));
  const known = broken.get(req);
  if (known) reject(known);
  req.once(BROKEN, reject);
  try {
    return await Promise.race([read(), end]);
  } catch (error) {
    throw isCutOff(req) ? cutOff(error) : error;
  } finally {
    req.off(BROKEN, reject);
    stopMeasuring();
    stopWatching();
  }
}

/** Measured at the socket: data that has arrived but is not yet read is not the sender's delay. */
function whenTooSlow(req: IncomingMessage, { windowMs, bytesPerSecond }: Pace, report: () => void): () => void {
  let before = req.socket.bytesRead;
  const timer = setInterval(() => {
    const { bytesRead } = req.socket;
    const isTooSlow = (bytesRead - before) * 1000 < bytesPerSecond * windowMs;
    before = bytesRead;
    if (isTooSlow && !req.complete && req.readableLength === 0) report();
  }, windowMs);
  return () => clearInterval(timer);
}

/** Only the log shows it. */
const cutOff = (cause: unknown) => new ServiceError('VALIDATION_FAILED', { message: 'The body was cut off', cause });
