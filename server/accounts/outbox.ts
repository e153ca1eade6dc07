import type { Kysely } from 'kysely';
import { v7 as uuidv7 } from 'uuid';
import type { MailKind, MailState, OutboxMail } from '../../entities/index.ts';
import type { Rate } from '../config.ts';
import type { Log } from '../log.ts';
import { type Database, sql } from '../parts/database/index.ts';
import type { Tables } from '../parts/database/tables.ts';
import { MailRefused, type MailTransport } from '../parts/mail/index.ts';
import type { MailComposer } from './mails.ts';

/** At most so many mails are on their way at once from one process: slow ones never hold up all. */
const CONCURRENCY = 10;
/** Longer than a delivery can take; past it a mail whose process died is taken up by another. */
const LEASE_MS = 60_000;
const POLL_MS = 1000;
const LONGEST_BACKOFF_MS = 60_000;
const SWEEP_EVERY_MS = 10 * 60_000;
const KEPT_MS = 7 * 24 * 60 * 60_000;
const DAY_MS = 24 * 60 * 60_000;

type DueMail = Pick<OutboxMail, 'id' | 'kind' | 'userId' | 'tokenId' | 'attempts'> & { expired: boolean };

interface Parts {
  database: Database;
  mail: MailTransport;
  /** How many mails of a kind one address gets. */
  rate: Rate;
  compose: MailComposer;
  log: Log;
}

/**
 * Mails that are owed. `enqueue` writes one in the transaction of what it announces; a worker in each process delivers,
 * and all processes share the work: whoever locks a row first (skip locked) moves its due time forward, which is its lease.
 * After a crash a mail may go out twice, with the same Message-ID and the same token; it is never lost.
 */
export function createOutbox({ database, mail, rate, compose, log }: Parts) {
  const inFlight = new Set<Promise<void>>();
  let wakeUp = Promise.withResolvers<void>();
  let stopping = false;
  let loop: Promise<void> | undefined;
  let sweeper: NodeJS.Timeout | undefined;

  const wake = () => wakeUp.resolve();

  const lease = (most: number): Promise<DueMail[]> =>
    database.transaction(async (_em, tables) => {
      const due = await tables
        .selectFrom('outbox')
        .select(['id', 'kind', 'user_id as userId', 'token_id as tokenId', 'attempts'])
        .select(sql<number>`expires_at <= ${database.now}`.as('expired'))
        .where('state', '=', 'pending')
        .where('due_at', '<=', database.now)
        .orderBy('due_at')
        .limit(most)
        .modifyEnd(database.skipLocked)
        .execute();
      if (due.length > 0) {
        await tables
          .updateTable('outbox')
          .set({ due_at: sql`${database.now} + ${LEASE_MS}`, attempts: sql`attempts + 1` })
          .where(
            'id',
            'in',
            due.map(({ id }) => id),
          )
          .execute();
      }
      return due.map((row) => ({ ...row, expired: row.expired === 1 }));
    });

  const settle = (id: string, change: { state: MailState } | { retryInMs: number }) =>
    database.write((tables) =>
      tables
        .updateTable('outbox')
        .set('state' in change ? change : { due_at: sql`${database.now} + ${Math.round(change.retryInMs)}` })
        .where('id', '=', id)
        .where('state', '=', 'pending')
        .execute(),
    );

  const attempt = async (due: DueMail): Promise<{ state: MailState } | { retryInMs: number }> => {
    if (due.expired) return { state: 'dropped' };
    const message = await compose(due);
    if (!message) return { state: 'dropped' };
    try {
      await mail.send({ id: due.id, ...message });
      return { state: 'sent' };
    } catch (error) {
      const attempts = due.attempts + 1;
      if (error instanceof MailRefused) {
        log.error({ err: error, mail: due.id, kind: due.kind }, 'a mail was refused for good');
        return { state: 'dead' };
      }
      log.warn({ err: error, mail: due.id, kind: due.kind, attempts }, 'a mail did not go out, it will be tried again');
      return { retryInMs: backoff(attempts) };
    }
  };

  const deliver = async (due: DueMail) => {
    try {
      const change = await attempt(due);
      await settle(due.id, change);
      if ('state' in change && change.state === 'dropped') {
        log.warn({ mail: due.id, kind: due.kind }, 'a mail was dropped: what it was for has passed');
      }
    } catch (error) {
      // The lease runs out and the mail is taken up again.
      log.warn({ err: error, mail: due.id }, 'the outcome of a mail could not be noted');
    }
  };

  const run = async () => {
    while (!stopping) {
      const free = CONCURRENCY - inFlight.size;
      wakeUp = Promise.withResolvers();
      const due = free > 0 ? await lease(free).then(noteSuccess, noteFailure) : [];
      for (const one of due) {
        const delivery = deliver(one).finally(() => {
          inFlight.delete(delivery);
          wake();
        });
        inFlight.add(delivery);
      }
      if (due.length < free || free === 0) await Promise.race([wakeUp.promise, pause(POLL_MS)]);
    }
  };

  // An outage is told once, not once a second.
  let failing = false;
  const noteSuccess = (due: DueMail[]) => {
    failing = false;
    return due;
  };
  const noteFailure = (error: unknown): DueMail[] => {
    if (!failing) log.warn({ err: error }, 'the outbox cannot be read, mails wait');
    failing = true;
    return [];
  };

  const sweep = async () => {
    await database.write((tables) =>
      tables
        .deleteFrom('outbox')
        .where('created_at', '<', sql<number>`${database.now} - ${Math.max(KEPT_MS, rate.seconds * 1000)}`)
        .where('state', '!=', 'pending')
        .execute(),
    );
    await database.write((tables) =>
      tables
        .deleteFrom('one_time_tokens')
        .where('expires_at', '<', sql<number>`${database.now} - ${KEPT_MS}`)
        .execute(),
    );
  };

  return {
    /**
     * Whether the user's address may get another mail of this kind now. Past its share the caller changes nothing, so that
     * whatever was mailed before stays valid. Exact, for the caller holds the lock on the user.
     */
    async hasRoomFor(tables: Kysely<Tables>, userId: string, kind: MailKind): Promise<boolean> {
      const { count } = await tables
        .selectFrom('outbox')
        .select(sql<number>`count(*)`.as('count'))
        .where('user_id', '=', userId)
        .where('kind', '=', kind)
        .where('created_at', '>', sql<number>`${database.now} - ${rate.seconds * 1000}`)
        .executeTakeFirstOrThrow();
      return Number(count) < rate.points;
    },

    /** Writes a mail that is owed. Call `wake` after the commit. */
    async enqueue(tables: Kysely<Tables>, { kind, userId, tokenId, lifeMs = DAY_MS }: Enqueued): Promise<void> {
      await tables
        .insertInto('outbox')
        .values({
          id: uuidv7(),
          kind,
          user_id: userId,
          token_id: tokenId ?? null,
          state: 'pending',
          attempts: 0,
          due_at: database.now,
          expires_at: sql`${database.now} + ${lifeMs}`,
          created_at: database.now,
        })
        .execute();
    },

    wake,

    start(): void {
      loop = run();
      sweeper = setInterval(() => sweep().catch(noteFailure), SWEEP_EVERY_MS * (0.5 + Math.random())).unref();
    },

    /** Takes no more mails and waits for those on their way. */
    async stop(): Promise<void> {
      stopping = true;
      clearInterval(sweeper);
      wake();
      await loop;
      await Promise.all(inFlight);
    },
  };
}

export interface Enqueued {
  kind: MailKind;
  userId: string;
  tokenId?: string;
  /** After this time nobody has use for the mail any more. */
  lifeMs?: number;
}

export type Outbox = ReturnType<typeof createOutbox>;

/** Doubling, with jitter, so that a mail server that comes back is not stormed. */
const backoff = (attempts: number): number =>
  Math.min(1000 * 2 ** (attempts - 1), LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
