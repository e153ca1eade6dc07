import { untilAborted } from './aborts/until-aborted.ts';
import type { Client, PublicEvent, ServiceEventsInput } from './api.ts';
import { isPassing, pauseAfter } from './retries.ts';

/** The longest wait that the service accepts. */
const WAIT_SECONDS = 25;

export interface FollowOptions extends Pick<ServiceEventsInput, 'types' | 'limit'> {
  /** The number of the last event that was handled; 0 begins with the oldest event that the service stores. */
  after: number;
  /**
   * Called when no event up to a number remains to be handled, also past events of other types. Begin after it next time:
   * the number of a rare event expires while the reader waits for the next one.
   */
  onPosition?: ((number: number) => unknown) | undefined;
  /** Ends the loop, also while it waits. */
  signal?: AbortSignal | undefined;
}

/**
 * Every public event after a number, in order, each once; waits for the next one without an end. Store `event.number` with
 * what the event changes, and begin after it next time. While the service cannot be reached the loop waits and tries again.
 * Throws ServiceError where trying again is no use: a wrong token, or EVENTS_EXPIRED.
 */
export async function* followEvents(
  client: Pick<Client, 'service'>,
  { after, onPosition, signal, ...query }: FollowOptions,
): AsyncGenerator<PublicEvent, void, void> {
  let next = after;
  let failures = 0;
  const read = async () => {
    const input = { ...query, after: next, waitSeconds: WAIT_SECONDS };
    try {
      return await untilAborted(signal, (call) => client.service.events.query(input, call));
    } catch (error) {
      if (signal?.aborted) return undefined;
      if (!isPassing(error)) throw error;
      await pauseAfter(error, failures++, signal);
      return undefined;
    }
  };
  while (!signal?.aborted) {
    const page = await read();
    if (!page) continue;
    failures = 0;
    for (const event of page.data) {
      if (signal?.aborted) return;
      yield event;
    }
    if (page.next > next) await onPosition?.(page.next);
    next = page.next;
  }
}
