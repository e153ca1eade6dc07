import { createOutage } from '../lib/outage.ts';
import type { Log } from '../telemetry/log.ts';
import type { Leases } from './leases.ts';

const POLL_MS = 1000;
/** The maximum pause between polls while the rows cannot be read. */
const MAX_BACKOFF_MS = 8000;
const RENEW_EVERY_MS = 5000;

/** A background job with work in the rows of a table. Any number of processes share it. */
interface Job<Row> {
  /** For the log: `mails`. */
  name: string;
  /** The maximum number of rows in work in this process. */
  atOnce: number;
  leases: Leases<Row>;
  /**
   * Must be idempotent. If it rejects, the row is retried once its lease has ended. `requireLease` throws if another process
   * may have the row: call it right before what nothing takes back.
   */
  work(row: Row, requireLease: () => void): Promise<void>;
  log: Log;
}

interface Worker<Row> {
  start(): void;
  /** Polls immediately, or after `delayMs`. */
  wake(delayMs?: number): void;
  /**
   * Reserves a place for a row that the caller inserts with a lease. Call the result right before `begin`. Undefined if
   * no place is free.
   */
  reserve(): (() => void) | undefined;
  /**
   * Begins work on a row that this process has inserted with a lease, in a reserved place. `leasedAt`: performance.now()
   * before the insertion, because the process may have been frozen since.
   */
  begin(row: Row, leasedAt: number): void;
  /** Takes no more rows and waits for those in work. */
  stop(): Promise<void>;
}

/** Leases rows and works on them until it is stopped. */
export function createWorker<Row>({ name, atOnce, leases, work, log }: Job<Row>): Worker<Row> {
  const inWork = new Map<Row, Promise<void>>();
  /** The ends of the leases by the clock of this process, which goes on while the process is frozen. */
  const heldUntil = new Map<Row, number>();
  // Leaves time for what follows the last check.
  const heldMs = leases.leaseMs - RENEW_EVERY_MS;
  const isHeld = (row: Row) => performance.now() < (heldUntil.get(row) ?? 0);
  const timers: NodeJS.Timeout[] = [];
  let wakeUp = Promise.withResolvers<void>();
  let stopping = false;
  /** Places reserved for rows that are being inserted. */
  let reserved = 0;
  /** True if rows may be waiting for a place. */
  let mayBeMore = false;
  let loop: Promise<void> | undefined;

  const outage = (message: string) => createOutage({ began: (error) => log.warn({ job: name, err: error }, message) });
  const leasing = outage('a background job cannot lease its rows; they wait');
  const working = outage('a background job failed on a row; it is retried');

  const wake = (delayMs = 0) => {
    if (delayMs > 0) setTimeout(wake, delayMs).unref();
    else wakeUp.resolve();
  };

  const take = async (most: number): Promise<Row[] | undefined> => {
    try {
      const rows = await leases.take(most, [...inWork.keys()]);
      leasing.succeeded();
      return rows;
    } catch (error) {
      leasing.failed(error);
      return undefined;
    }
  };

  const begin = (row: Row, leasedAt: number) => {
    heldUntil.set(row, leasedAt + heldMs);
    const requireLease = () => {
      if (!isHeld(row)) throw new Error('the lease has ended: another process may have the row');
    };
    const done = work(row, requireLease)
      .then(working.succeeded, working.failed)
      .finally(() => {
        inWork.delete(row);
        heldUntil.delete(row);
        if (mayBeMore) wake();
      });
    inWork.set(row, done);
  };

  const run = async () => {
    let pause = POLL_MS;
    while (!stopping) {
      const free = atOnce - inWork.size - reserved;
      wakeUp = Promise.withResolvers();
      const leasedAt = performance.now();
      const rows = free > 0 ? await take(free) : [];
      for (const row of rows ?? []) begin(row, leasedAt);
      pause = rows ? POLL_MS : Math.min(pause * 2, MAX_BACKOFF_MS);
      const isWhole = free > 0 && rows?.length === Math.min(free, leases.batch ?? free);
      mayBeMore = free <= 0 || isWhole || leases.hasFull?.([...inWork.keys()]) === true;
      if (!isWhole) await Promise.race([wakeUp.promise, elapsed(pause)]);
    }
  };

  const renew = async () => {
    const rows = [...inWork.keys()];
    if (rows.length === 0) return;
    const renewedAt = performance.now();
    try {
      await leases.renew(rows);
    } catch (error) {
      return leasing.failed(error);
    }
    // If the renewal was answered late, another process may already have the row.
    for (const row of rows.filter(isHeld)) heldUntil.set(row, renewedAt + heldMs);
  };

  return {
    wake,
    begin,

    reserve() {
      if (loop === undefined || stopping || inWork.size + reserved >= atOnce) return undefined;
      reserved++;
      return () => {
        reserved--;
      };
    },

    start(): void {
      loop = run();
      timers.push(setInterval(() => void renew(), RENEW_EVERY_MS).unref());
    },

    async stop(): Promise<void> {
      stopping = true;
      wake();
      await loop;
      await Promise.all(inWork.values());
      for (const timer of timers) clearInterval(timer);
    },
  };
}

const elapsed = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
