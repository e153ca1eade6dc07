import { flushCompileCache } from 'node:module';
import { constants, setPriority } from 'node:os';
import type { ErrorCode, ErrorDetails } from '../errors.ts';
import { type ImagePurpose, toRefusal, toWebp, type WebpImage } from './conversion.ts';
import { requireAffordable } from './image-cost.ts';
import { PIPE, readImages } from './image-pipe.ts';

/** A request about an image that this process holds. `close` gets no response. */
export type Request = { id: number } & ({ step: 'convert'; purpose: ImagePurpose } | { step: 'close' });

/** The response to an image on the pipe, or to a request. `failure` holds the fields of a ServiceError. */
export type Answer = { id: number } & (
  | { result: boolean | WebpImage }
  | { failure: { code: ErrorCode; message: string; details?: ErrorDetails; retryAfter?: number; cause: unknown } }
);

// Runs first: all threads that start later inherit it.
setPriority(constants.priority.PRIORITY_LOW);
// The service handles signals to the process group: it completes its requests and then disconnects.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
process.on('disconnect', () => {
  flushCompileCache();
  // `process.exit` would wait for conversions that are no longer needed.
  process.kill(process.pid, 'SIGKILL');
});

const open = new Map<number, Buffer>();

async function answer(id: number, work: () => Promise<boolean | WebpImage>): Promise<void> {
  const send = (reply: Answer) => process.send?.(reply);
  try {
    send({ id, result: await work() });
  } catch (error) {
    const refusal = toRefusal(error);
    const { retryAfter, cause } = refusal;
    send({ id, failure: { ...refusal.toJSON(), ...(retryAfter !== undefined && { retryAfter }), cause } });
  }
}

readImages(PIPE, ({ id, type, bytes: sent }) =>
  answer(id, async () => {
    const { bytes, isHeavy } = await requireAffordable(sent, type);
    open.set(id, bytes);
    return isHeavy;
  }),
);

process.on('message', (request: Request) => {
  const { id, step } = request;
  const bytes = open.get(id);
  open.delete(id);
  if (step === 'convert' && bytes) answer(id, () => toWebp(bytes, request.purpose));
});
