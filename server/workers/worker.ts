import type { Log } from '../log.ts';

const POLL_MS = 1000;
/** Between looks for work while the rows cannot be read. */
const LONGEST_PAUSE_MS = 8000;
const RENEW_EVERY_MS = 5000;

/** A background job whose work is rows of a table. Any number of processes share it. */
export interface Job<Row> {
  /** For the log: `mails`. */
  name: string;
  /** Most rows that this process works on at once. */
  atOnce: number;
  /**
   * Takes up to `most` rows, each for this process alone and for a limited time (select … for update skip locked, then move
   * the due time): after a crash another process takes them up.
   */
  lease(most: number): Promise<Row[]>;
  /** Extends the leases of rows that are still being worked on. Needed where the work may outlast a lease. */
  renew?(rows: Row[]): Promise<void>;
  /** Must be repeatable. When it rejects, the row comes up again once its lease has ended. */
  work(row: Row): Promise<void>;
  log: Log;
}

export interface Worker {
  start(): void;
  /** Looks for work at once, or in `delayMs`, rather than at the next poll. */
  wake(delayMs?: number): void;
  /** Takes no more rows and waits for those in work. */
  stop(): Promise<void>;
}

/** Leases rows and works on them until it is stopped. */
export function createWorker<Row>({ name, atOnce, lease, renew, work, log }: Job<Row>): Worker {
  const inWork = new Map<Row, Promise<void>>();
  let wakeUp = Promise.withResolvers<void>();
  let stopping = false;
  let loop: Promise<void> | undefined;
  let renewal: NodeJS.Timeout | undefined;

  const wake = (delayMs = 0) => {
    if (delayMs > 0) setTimeout(wake, delayMs).unref();
    else wakeUp.resolve();
  };

  const leasing = toldOnce(log, { job: name }, 'a background job cannot read its work, which waits');
  const working = toldOnce(
    log,
    { job: name },
    'a background job could not finish a piece of work, which is tried again',
  );

  const take = async (most: number): Promise<Row[] | undefined> => {
    try {
      const rows = await lease(most);
      leasing.over();
      return rows;
    } catch (error) {
      leasing.note(error);
      return undefined;
    }
  };

  const begin = (row: Row) => {
    const done = work(row)
      .then(working.over, working.note)
      .finally(() => {
        inWork.delete(row);
        wake();
      });
    inWork.set(row, done);
  };

  const run = async () => {
    let pause = POLL_MS;
    while (!stopping) {
      const free = atOnce - inWork.size;
      wakeUp = Promise.withResolvers();
      const rows = free > 0 ? await take(free) : [];
      rows?.forEach(begin);
      pause = rows ? POLL_MS : Math.min(pause * 2, LONGEST_PAUSE_MS);
      const mayBeMore = rows !== undefined && free > 0 && rows.length === free;
      if (!mayBeMore) await Promise.race([wakeUp.promise, elapsed(pause)]);
    }
  };

  return {
    wake,

    start(): void {
      loop = run();
      if (!renew) return;
      renewal = setInterval(() => {
        if (inWork.size > 0) renew([...inWork.keys()]).catch(leasing.note);
      }, RENEW_EVERY_MS).unref();
    },

    async stop(): Promise<void> {
      stopping = true;
      wake();
      await loop;
      await Promise.all(inWork.values());
      clearInterval(renewal);
    },
  };
}

/** A trouble is told when it begins, not each time that it is met until it is over. */
function toldOnce(log: Log, fields: object, message: string) {
  let isTold = false;
  return {
    note(error: unknown): void {
      if (!isTold) log.warn({ ...fields, err: error }, message);
      isTold = true;
    },
    over(): void {
      isTold = false;
    },
  };
}

const elapsed = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
