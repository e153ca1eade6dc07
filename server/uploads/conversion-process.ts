import { flushCompileCache } from 'node:module';
import { constants, setPriority } from 'node:os';
import type { ErrorCode, ErrorDetails } from '../errors.ts';
import type { ImageType } from '../image-limits.ts';
import { type ImagePurpose, toRefusal, toWebp, type WebpImage } from './conversion.ts';
import { requireAffordable } from './image-cost.ts';

/** What converter.ts asks this process about one image. All but `close` are answered. */
export type Request = { id: number } & (
  | { step: 'open'; bytes: Buffer; type: ImageType }
  | { step: 'convert'; purpose: ImagePurpose }
  | { step: 'close' }
);

/** To `open`: whether the image is heavy. `failure` has what a ServiceError is made of. */
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

async function perform(request: Request): Promise<boolean | WebpImage | undefined> {
  const { id, step } = request;
  if (step === 'open') {
    const { bytes, isHeavy } = await requireAffordable(request.bytes, request.type);
    open.set(id, bytes);
    return isHeavy;
  }
  const bytes = open.get(id);
  open.delete(id);
  return step === 'convert' && bytes ? toWebp(bytes, request.purpose) : undefined;
}

process.on('message', async (request: Request) => {
  const { id } = request;
  const answer = (reply: Answer) => process.send?.(reply);
  try {
    const result = await perform(request);
    if (result !== undefined) answer({ id, result });
  } catch (error) {
    const refusal = toRefusal(error);
    const { retryAfter, cause } = refusal;
    answer({ id, failure: { ...refusal.toJSON(), ...(retryAfter !== undefined && { retryAfter }), cause } });
  }
});
