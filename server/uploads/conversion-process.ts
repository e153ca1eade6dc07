import { flushCompileCache } from 'node:module';
import { constants, setPriority } from 'node:os';
import type { ErrorCode, ErrorDetails } from '../errors.ts';
import { type ImagePurpose, toRefusal, toWebp, type WebpImage } from './conversion.ts';
import { requireAffordable } from './image-cost.ts';
import { PIPE, readImages } from './image-pipe.ts';

/** What converter.ts asks this process about an image that it holds. `close` is not answered. */
export type Request = { id: number } & ({ step: 'convert'; purpose: ImagePurpose } | { step: 'close' });

/** To an image on the pipe: whether it is heavy. `failure` has what a ServiceError is made of. */
export type Answer = { id: number } & (
  | { result: boolean | WebpImage }
  | { failure: { code: ErrorCode; message: string; details?: ErrorDetails; retryAfter?: number; cause: unknown } }
);

// First of all: the threads that are started from now on inherit it.
setPriority(constants.priority.PRIORITY_LOW);
// A signal to the whole process group is for the service, which completes its requests and then disconnects.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
process.on('disconnect', () => {
  flushCompileCache();
  // `process.exit` would wait for conversions that nobody waits for any more.
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
