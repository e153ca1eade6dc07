import type { ErrorCode, ErrorDetails } from '../../errors.ts';
import type { ImagePurpose } from '../../shared/image-limits.ts';
import { type ConvertedImage, type DerivedImage, fromStored, toRefusal, toWebp } from './conversion.ts';
import { type Affordable, requireAffordable } from './image-cost.ts';
import type { ReadImage } from './image-pipe.ts';

/** A request about an image that the process holds. `close` gets no response. */
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

/** A picture that the service has made: its cost is known. */
const stored = (bytes: Buffer): Affordable => ({ bytes, isHeavy: false });

/** The images in the conversion process, each until the one request about it. */
export function createHeldImages(send: (answer: Answer) => void) {
  const held = new Map<number, Buffer>();

  const answer = async (id: number, work: () => Promise<Result>): Promise<void> => {
    try {
      send({ id, result: await work() });
    } catch (error) {
      const refusal = toRefusal(error);
      const { retryAfter, cause } = refusal;
      send({ id, failure: { ...refusal.toJSON(), ...(retryAfter !== undefined && { retryAfter }), cause } });
    }
  };

  return {
    /** Checks the cost of an image and holds it. The result is true if it must be converted alone. */
    receive: ({ id, type, bytes: sent }: ReadImage): Promise<void> =>
      answer(id, async () => {
        const { bytes, isHeavy } = type === 'image/webp' ? stored(sent) : await requireAffordable(sent, type);
        held.set(id, bytes);
        return isHeavy;
      }),

    /** Does what is requested with an image that is held; ignores any other. */
    async request(request: Request): Promise<void> {
      const { id, step } = request;
      const bytes = held.get(id);
      held.delete(id);
      if (!bytes) return;
      if (step === 'convert') await answer(id, () => toWebp(bytes, request.purpose, request.widths));
      if (step === 'derive') await answer(id, () => fromStored(bytes, request.widths));
    },
  };
}
