import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Database } from '../parts/database/contract.ts';
import type { EventType } from '../shared/event-types.ts';
import type { Log } from '../telemetry/log.ts';
import { gauges } from '../telemetry/metrics.ts';
import type { PublicEvent } from './catalogue.ts';
import { createSequencer, type OnNumbered } from './sequencer.ts';
import { createStream, type StreamPage, type StreamQuery } from './stream.ts';
import { createWaiting } from './waiting.ts';

export type { PublicEvent } from './catalogue.ts';
export type { NumberRange, OnNumbered } from './sequencer.ts';
export type { StreamPage, StreamQuery } from './stream.ts';

/** The maximum number of calls of one service that wait in this process. */
const MAX_WAITING = 10;
/** For a call that was refused because too many wait. */
const RETRY_SECONDS = 5;

interface Parts {
  database: Database;
  log: Log;
}

interface WaitOptions {
  types?: readonly EventType[] | undefined;
  limit?: number | undefined;
  /** Aborted when the reader goes away, or the process stops. */
  signal: AbortSignal;
  /** How long to wait at most. */
  ms: number;
}

/** The stream of public events, in one order. */
export function createEvents({ serviceTokens }: Pick<Config, 'serviceTokens'>, { database, log }: Parts) {
  const readers: (() => boolean | Promise<boolean>)[] = [() => serviceTokens.length > 0];
  const handlers: OnNumbered[] = [];
  const isEnabled = async () => {
    for (const hasReader of readers) if (await hasReader()) return true;
    return false;
  };
  const stream = createStream(database);
  const growth = createWaiting(stream.lastNumber);
  const worker = createSequencer({
    database,
    isEnabled,
    async onNumbered(tables, range) {
      for (const handle of handlers) await handle(tables, range);
    },
    log,
  });
  gauges(async () => {
    if (!(await isEnabled())) return { account_events_lag_seconds: 0, account_events_last_number: 0 };
    const [lagMs, last] = await Promise.all([stream.lagMs(), stream.lastNumber()]);
    return { account_events_lag_seconds: lagMs / 1000, account_events_last_number: last };
  });

  /** Like `page`, but waits until the page has an event. After the wait it may be empty. */
  const waitAfter = async (after: number, { types, limit = 1, signal, ms }: WaitOptions): Promise<StreamPage> => {
    const end = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
    let page = await stream.page({ after, limit, types });
    while (page.events.length === 0 && !end.aborted) {
      await growth(page.next, end);
      page = await stream.page({ after: page.next, limit, types });
    }
    return page;
  };

  const waitingOf = new Map<string, number>();
  const countOf = (reader: string) => waitingOf.get(reader) ?? 0;

  return {
    /** The numbering of events in this process. */
    worker,
    page: stream.page,
    byIds: stream.byIds,
    read: async (query: StreamQuery): Promise<PublicEvent[]> => (await stream.page(query)).events,
    lastNumber: stream.lastNumber,
    waitAfter,

    /** Events are numbered only while one of these functions returns true: an event has a reader. Register before `start`. */
    enabledIf(hasReader: () => boolean | Promise<boolean>): void {
      readers.push(hasReader);
    },

    /** Runs in each transaction that numbers events. Register before `start`. */
    onNumbered(handler: OnNumbered): void {
      handlers.push(handler);
    },

    /** A page for a service by its name. RATE_LIMITED while too many of its calls wait. */
    async feed(
      reader: string,
      { waitMs, signal, ...query }: StreamQuery & { waitMs: number; signal: AbortSignal },
    ): Promise<StreamPage> {
      if (waitMs === 0 || signal.aborted) return stream.page(query);
      if (countOf(reader) >= MAX_WAITING) throw tooMany();
      waitingOf.set(reader, countOf(reader) + 1);
      try {
        return await waitAfter(query.after, { ...query, signal, ms: waitMs });
      } finally {
        waitingOf.set(reader, countOf(reader) - 1);
      }
    },
  };
}

const tooMany = () =>
  new ServiceError('RATE_LIMITED', {
    message: `At most ${MAX_WAITING} calls of a service may wait at once`,
    retryAfter: RETRY_SECONDS,
    limit: { points: MAX_WAITING, seconds: RETRY_SECONDS },
  });

export type Events = ReturnType<typeof createEvents>;
