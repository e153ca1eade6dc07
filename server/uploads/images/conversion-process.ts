import { flushCompileCache } from 'node:module';
import { constants, setPriority } from 'node:os';
import type { ErrorCode, ErrorDetails } from '../../errors.ts';
import type { ImagePurpose } from '../../shared/image-limits.ts';
import { type ConvertedImage, type DerivedImage, fromStored, toRefusal, toWebp } from './conversion.ts';
import { type Affordable, requireAffordable } from './image-cost.ts';
import { PIPE, readImages } from './image-pipe.ts';

/** A request about an image that this process holds. `close` gets no response. */
export type Request = { id: number } & (
  | { step: 'convert'; purpose: ImagePurpose; widths: readonly number[] }
  | { step: 'derive'; widths: readonly number[] }
  | { step: 'close' }
);

type Result = boolean | ConvertedImage | DerivedImage;

/** The response to an image on the pipe, or to a request. `failure` holds the fields of a ServiceError. */
export type Answer = { id: number } & (
  | { result: Result }
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

/** A picture that the service has made: its cost is known. */
const stored = (bytes: Buffer): Affordable => ({ bytes, isHeavy: false });

async function answer(id: number, work: () => Promise<Result>): Promise<void> {
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
    const { bytes, isHeavy } = type === 'image/webp' ? stored(sent) : await requireAffordable(sent, type);
    open.set(id, bytes);
    return isHeavy;
  }),
);

process.on('message', (request: Request) => {
  const { id, step } = request;
  const bytes = open.get(id);
  open.delete(id);
  if (!bytes) return;
  if (step === 'convert') answer(id, () => toWebp(bytes, request.purpose, request.widths));
  if (step === 'derive') answer(id, () => fromStored(bytes, request.widths));
});
