import type { Kysely, RawBuilder } from 'kysely';
import { v7 as uuidv7 } from 'uuid';
import type { MailKind, MailState, OutboxMail } from '../../entities/index.ts';
import type { Rate } from '../config.ts';
import type { Log } from '../log.ts';
import { type Database, sql, type WriteTables } from '../parts/database/index.ts';
import type { Tables } from '../parts/database/tables.ts';
import { DELIVERIES_AT_ONCE, MailRefused, type MailTransport } from '../parts/mail/index.ts';
import type { Admit } from './mail-requests.ts';
import type { MailComposer } from './mails.ts';
import { isTokenPurpose, TOKEN_LIFE_MS } from './one-time-tokens.ts';
import { inboxOf } from './text-rules.ts';

/** After a crash a mail waits this long for another process. A delivery that takes longer renews its lease. */
const LEASE_MS = 20_000;
const RENEW_EVERY_MS = 5000;
const POLL_MS = 1000;
/**
 * A mail that was asked for waits until requests of the same moment have been answered: what the worker does for an address
 * that has an account takes nothing from them, so that their duration tells nothing.
 */
const REQUEST_DELAY_MS = 500;
const LONGEST_BACKOFF_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 10 * 60_000;
const SWEEP_BATCH = 1000;
const KEPT_MS = 7 * 24 * 60 * 60_000;
const DAY_MS = 24 * 60 * 60_000;

export interface Mailing {
  kind: MailKind;
  /** Normalized. For a kind with a token it may be nobody's. */
  email: string;
  /** Unknown while it is a request. */
  userId?: string;
  /** What the text of this kind needs to know, at most 255 characters. */
  detail?: string;
}

export type DueMail = Pick<OutboxMail, 'id' | 'kind' | 'email' | 'userId' | 'tokenId' | 'detail' | 'attempts'> & {
  expired: boolean;
};

type Outcome = { state: MailState } | { retryInMs: number } | 'nobody';

interface Parts {
  database: Database;
  /** Rows are counted for these limits, so they are kept as long. */
  rates: { mail: Rate; inbox: Rate };
  mail: MailTransport;
  admit: Admit;
  compose: MailComposer;
  log: Log;
}

/**
 * Mails to be sent. `enqueue` writes one in the transaction of what it announces; a worker in each process delivers, and all
 * processes share the work: the process that locks a row first (skip locked) moves its due time forward, which is its lease.
 * After a crash a mail may go out twice, with the same Message-ID and the same token; it is never lost.
 */
export function createOutbox({ database, mail, rates, admit, compose, log }: Parts) {
  const keptMs = Math.max(KEPT_MS, rates.mail.seconds * 1000, rates.inbox.seconds * 1000);
  const inFlight = new Map<string, Promise<void>>();
  let wakeUp = Promise.withResolvers<void>();
  let stopping = false;
  let loop: Promise<void> | undefined;
  const timers: NodeJS.Timeout[] = [];

  const wake = () => wakeUp.resolve();

  const insert = (tables: WriteTables, { kind, email, userId, detail }: Mailing, delayMs: number) =>
    tables
      .insertInto('outbox')
      .values({
        id: uuidv7(),
        kind,
        email,
        inbox: inboxOf(email),
        user_id: userId ?? null,
        token_id: null,
        detail: detail ?? null,
        state: 'pending',
        attempts: 0,
        due_at: sql`${database.now} + ${delayMs}`,
        expires_at: sql`${database.now} + ${lifeOf(kind)}`,
        created_at: database.now,
      })
      .execute();

  const lease = (most: number): Promise<DueMail[]> =>
    database.transaction(async (_em, tables) => {
      const due = await tables
        .selectFrom('outbox')
        .select(['id', 'kind', 'email', 'user_id as userId', 'token_id as tokenId', 'detail', 'attempts'])
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

  const renewLeases = async () => {
    if (inFlight.size === 0) return;
    await database.write((tables) =>
      tables
        .updateTable('outbox')
        .set({ due_at: sql`${database.now} + ${LEASE_MS}` })
        .where('id', 'in', [...inFlight.keys()])
        .where('state', '=', 'pending')
        .execute(),
    );
  };

  const settle = (id: string, outcome: Outcome) =>
    database.write<unknown>((tables) => {
      if (outcome === 'nobody') return tables.deleteFrom('outbox').where('id', '=', id).execute();
      return tables
        .updateTable('outbox')
        .set('state' in outcome ? outcome : { due_at: sql`${database.now} + ${Math.round(outcome.retryInMs)}` })
        .where('id', '=', id)
        .where('state', '=', 'pending')
        .execute();
    });

  const attempt = async (due: DueMail): Promise<Outcome> => {
    if (due.expired) return { state: 'dropped' };
    const admitted = await admit(due);
    if (admitted === 'nobody') return 'nobody';
    const message = admitted === 'no room' ? undefined : await compose(admitted);
    if (!message) return { state: 'dropped' };
    try {
      await mail.send({ id: due.id, ...message });
    } catch (error) {
      if (!(error instanceof MailRefused)) {
        noteFailure(error);
        return { retryInMs: backoff(due.attempts + 1) };
      }
      log.error({ err: error, mail: due.id, kind: due.kind }, 'a mail was refused for good');
      return { state: 'dead' };
    }
    noteSuccess();
    return { state: 'sent' };
  };

  const deliver = async (due: DueMail) => {
    try {
      const outcome = await attempt(due);
      await settle(due.id, outcome);
      if (outcome !== 'nobody' && 'state' in outcome && outcome.state === 'dropped') {
        log.warn({ mail: due.id, kind: due.kind }, 'a mail was dropped: it is of no use any more, or one too many');
      }
    } catch (error) {
      // The lease runs out and the mail is taken up again.
      log.warn({ err: error, mail: due.id }, 'the outcome of a mail could not be noted');
    }
  };

  const run = async () => {
    while (!stopping) {
      const free = DELIVERIES_AT_ONCE - inFlight.size;
      wakeUp = Promise.withResolvers();
      const due = free > 0 ? await lease(free).then(noteReadable, noteUnreadable) : [];
      for (const one of due) {
        const delivery = deliver(one).finally(() => {
          inFlight.delete(one.id);
          wake();
        });
        inFlight.set(one.id, delivery);
      }
      if (due.length < free || free === 0) await Promise.race([wakeUp.promise, pause(POLL_MS)]);
    }
  };

  // Each trouble is told once, not at every mail: a setting that is wrong concerns them all.
  let failing = false;
  const noteFailure = (error: unknown) => {
    if (failing) log.debug({ err: error }, 'a mail did not go out');
    else log.error({ err: error }, 'mails do not go out: check SMTP_URL and MAIL_FROM. They are kept and tried again');
    failing = true;
  };
  const noteSuccess = () => {
    if (failing) log.info('mails go out again');
    failing = false;
  };

  let unreadable = false;
  const noteReadable = (due: DueMail[]) => {
    unreadable = false;
    return due;
  };
  const noteUnreadable = (error: unknown): DueMail[] => {
    if (!unreadable) log.warn({ err: error }, 'the outbox cannot be read, mails wait');
    unreadable = true;
    return [];
  };

  /** Deletes what a condition finds, a batch a statement: any backlog goes, however little time one has. */
  const deleteInBatches = async (table: 'outbox' | 'one_time_tokens', isOld: RawBuilder<boolean>) => {
    const deleteBatch = () =>
      database.transaction(async (_em, tables) => {
        const rows = await tables.selectFrom(table).select('id').where(isOld).limit(SWEEP_BATCH).execute();
        const ids = rows.map(({ id }) => id);
        if (ids.length > 0) await tables.deleteFrom(table).where('id', 'in', ids).execute();
        return ids.length;
      });
    while (!stopping && (await deleteBatch()) === SWEEP_BATCH);
  };

  const sweep = async () => {
    await deleteInBatches('outbox', sql`created_at < ${database.now} - ${keptMs} and state <> 'pending'`);
    await deleteInBatches('one_time_tokens', sql`expires_at < ${database.now} - ${KEPT_MS}`);
  };

  const every = (ms: number, work: () => Promise<void>) => {
    timers.push(setInterval(() => work().catch(noteUnreadable), ms).unref());
  };

  return {
    /** Queues a mail in the caller's transaction. Call `wake` after the commit. */
    async enqueue(tables: Kysely<Tables>, mailing: Mailing): Promise<void> {
      await insert(tables, mailing, 0);
    },

    /**
     * Writes down that a mail was asked for. The work is the same for every address, known or not: the worker finds out
     * whether there is an account to mail (OWASP ASVS 6.3.8).
     */
    async request(mailing: Pick<Mailing, 'kind' | 'email'>): Promise<void> {
      await database.write((tables) => insert(tables, mailing, REQUEST_DELAY_MS));
      setTimeout(wake, REQUEST_DELAY_MS).unref();
    },

    wake,

    start(): void {
      loop = run();
      every(RENEW_EVERY_MS, renewLeases);
      every(SWEEP_EVERY_MS * (0.5 + Math.random()), sweep);
    },

    /** Takes no more mails and waits for those on their way. */
    async stop(): Promise<void> {
      stopping = true;
      wake();
      await loop;
      await Promise.all(inFlight.values());
      for (const timer of timers) clearInterval(timer);
    },
  };
}

export type Outbox = ReturnType<typeof createOutbox>;

/** How long a mail of this kind is of use, in milliseconds. */
const lifeOf = (kind: MailKind): number => (isTokenPurpose(kind) ? TOKEN_LIFE_MS[kind] : DAY_MS);

/** Doubling, with jitter, so that a mail server that comes back is not stormed. */
const backoff = (attempts: number): number =>
  Math.min(1000 * 2 ** (attempts - 1), LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
