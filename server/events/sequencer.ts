/**
 * Gives public events their numbers, after their commit. An id or a time is made before the commit: a reader that goes
 * by them skips events that commit late. The sequencer sees an event only once it is committed, so a late one gets a
 * later number. One process at a time holds the lease; if two ever did, the row of `event_sequence`, locked in each
 * transaction that gives numbers, still gives each number once.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { v7 as uuid } from 'uuid';
import { createOutage } from '../lib/outage.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import { ignored } from '../telemetry/background.ts';
import type { Log } from '../telemetry/log.ts';
import { createUnnumbered, type Numbered } from './unnumbered.ts';

/** The pause of the holder between two looks at an index without new events. */
const POLL_MS = 40;
/** After a crash, another process numbers this much later. */
const LEASE_MS = 4000;
const RENEW_EVERY_MS = 1500;
/** The pause of other processes before they look at the lease again, and while nobody reads events. */
const WAIT_MS = 1000;

/** The numbers that a transaction has given, first and last. */
export interface NumberRange {
  from: number;
  to: number;
}

/** Runs in the transaction that gives the numbers. */
export type OnNumbered = (tables: AllTables, range: NumberRange) => Promise<void>;

interface Parts {
  database: Database;
  /** Whether events have a reader. Called at most once a second; events wait for the call. */
  isEnabled(): Promise<boolean>;
  onNumbered: OnNumbered;
  log: Log;
}

export function createSequencer({ database, isEnabled, onNumbered, log }: Parts) {
  const owner = uuid();
  const unnumbered = createUnnumbered(database);
  const leaseEnd = sql<number>`${database.now} + ${LEASE_MS}`;
  const stopping = new AbortController();
  const outage = createOutage({
    began: (error) => log.warn({ job: 'events', err: error }, 'events cannot be numbered; they wait'),
    ended: () => log.info({ job: 'events' }, 'events are numbered again'),
  });
  let loop: Promise<void> | undefined;
  /** By `performance.now()`. */
  let holdsUntil = 0;
  let enabledUntil = 0;
  /** Whether events of an older release were looked for since this process has the lease. */
  let hasAdopted = false;
  /** A failover to a replica may set the stored number back. */
  let lastGiven = 0;

  /** The owner of the lease, if it has ended or is this process. */
  const formerOwner = async (): Promise<string | undefined> => {
    const row = await database.query((tables) =>
      tables
        .selectFrom('event_sequence')
        .select('owner')
        .where('id', '=', 1)
        .where((is) => is.or([is('ends_at', '<=', database.now), is('owner', '=', owner)]))
        .executeTakeFirst(),
    );
    return row?.owner;
  };

  /** Takes or renews the lease. */
  const lease = async (): Promise<boolean> => {
    const former = await formerOwner();
    if (former === undefined) return false;
    if (former !== owner) hasAdopted = false;
    const began = performance.now();
    const { numUpdatedRows } = await database.write((tables) =>
      tables
        .updateTable('event_sequence')
        .set({ owner, ends_at: leaseEnd })
        .where('id', '=', 1)
        .where((is) => is.or([is('ends_at', '<=', database.now), is('owner', '=', owner)]))
        .executeTakeFirst(),
    );
    if (numUpdatedRows !== 1n) return false;
    if (!hasAdopted) await unnumbered.adopt();
    hasAdopted = true;
    holdsUntil = began + RENEW_EVERY_MS;
    return true;
  };

  /** Numbers the oldest events that wait. Undefined if another process holds the lease. */
  const numberSome = (since: number): Promise<Numbered | undefined> =>
    database.change(async (tables) => {
      const sequence = await tables
        .selectFrom('event_sequence')
        .select(['last_number as last', 'owner'])
        .where('id', '=', 1)
        .modifyEnd(database.skipLocked)
        .executeTakeFirst();
      if (sequence?.owner !== owner) return undefined;
      const from = Math.max(Number(sequence.last), lastGiven) + 1;
      const numbered = await unnumbered.number(tables, { since, from });
      if (numbered.count === 0) return numbered;
      const to = numbered.next - 1;
      const set = { last_number: to, ends_at: leaseEnd };
      await tables.updateTable('event_sequence').set(set).where('id', '=', 1).execute();
      if (to >= from) await onNumbered(tables, { from, to });
      return numbered;
    });

  /** One step; resolves to the pause before the next one. */
  const step = async (): Promise<number> => {
    if (performance.now() >= enabledUntil) {
      if (!(await isEnabled())) return WAIT_MS;
      enabledUntil = performance.now() + WAIT_MS;
    }
    if (performance.now() >= holdsUntil && !(await lease())) return WAIT_MS;
    const since = await unnumbered.look();
    if (since === undefined) return POLL_MS;
    const numbered = await numberSome(since).catch((error: unknown) => {
      unnumbered.failed();
      throw error;
    });
    if (numbered === undefined) {
      holdsUntil = 0;
      return POLL_MS;
    }
    unnumbered.committed(numbered);
    lastGiven = Math.max(lastGiven, numbered.next - 1);
    return numbered.isFull ? 0 : POLL_MS;
  };

  const run = async () => {
    while (!stopping.signal.aborted) {
      const pause = await step().then(
        (ms) => {
          outage.succeeded();
          return ms;
        },
        (error: unknown) => {
          outage.failed(error);
          return WAIT_MS;
        },
      );
      if (pause > 0) await delay(pause, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
    }
  };

  return {
    start(): void {
      loop = run();
    },

    /** Gives the lease back: another process numbers within a second. */
    async stop(): Promise<void> {
      stopping.abort();
      await loop;
      if (holdsUntil === 0) return;
      await database
        .write((tables) =>
          tables.updateTable('event_sequence').set({ ends_at: 0 }).where('owner', '=', owner).execute(),
        )
        .catch(ignored('release_event_lease'));
    },
  };
}
