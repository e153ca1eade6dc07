import type { Rate } from '../config/index.ts';
import type { Log } from '../log.ts';
import type { AllTables, Database } from '../parts/database/contract.ts';
import { DELIVERIES_AT_ONCE, MailDeferred, MailRefused, type MailTransport } from '../parts/mail/contract.ts';
import { createWorker } from '../workers/worker.ts';
import type { Admit } from './mail-requests.ts';
import type { MailComposer } from './mails.ts';
import { createOutboxRows, type DueMail, type Mailing, type Outcome } from './outbox-rows.ts';

/**
 * A mail that was asked for waits until requests of the same moment have been answered: what the worker does for an address
 * that has an account takes nothing from them, so that their duration tells nothing.
 */
const REQUEST_DELAY_MS = 500;
const LONGEST_BACKOFF_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 10 * 60_000;

interface Parts {
  database: Database;
  /** Rows are counted for these limits. */
  rates: { mail: Rate; inbox: Rate };
  mail: MailTransport;
  admit: Admit;
  compose: MailComposer;
  log: Log;
}

/**
 * Mails to be sent. `enqueue` writes one in the transaction of what it announces; the worker of each process delivers. After
 * a crash a mail may go out twice, with the same Message-ID and the same token; it is never lost.
 */
export function createOutbox({ database, mail, rates, admit, compose, log }: Parts) {
  const rows = createOutboxRows(database, { countedMs: Math.max(rates.mail.seconds, rates.inbox.seconds) * 1000 });
  let sweeper: NodeJS.Timeout | undefined;

  // A setting that is wrong concerns all mails: it is told once.
  let isFailing = false;
  const noteFailure = (error: unknown) => {
    if (isFailing) log.debug({ err: error }, 'a mail did not go out');
    else log.error({ err: error }, 'mails do not go out: check SMTP_URL and MAIL_FROM. They are kept and tried again');
    isFailing = true;
  };
  const noteSuccess = () => {
    if (isFailing) log.info('mails go out again');
    isFailing = false;
  };

  const attempt = async (due: DueMail): Promise<Outcome> => {
    if (due.expired) return { state: 'dropped' };
    const admitted = await admit(due);
    if (admitted === 'unwanted') return 'unwanted';
    const message = admitted === 'no room' ? undefined : await compose(admitted);
    if (!message) return { state: 'dropped' };
    try {
      await mail.send({ id: due.id, ...message });
    } catch (error) {
      if (error instanceof MailRefused) {
        log.error({ err: error, mail: due.id, kind: due.kind }, 'a mail was refused for good');
        return { state: 'dead' };
      }
      if (error instanceof MailDeferred) log.info({ err: error, mail: due.id }, 'a mail is tried again later');
      else noteFailure(error);
      return { retryInMs: backoff(due.attempts + 1) };
    }
    noteSuccess();
    return { state: 'sent' };
  };

  const deliver = async (due: DueMail): Promise<void> => {
    const outcome = await attempt(due);
    await rows.settle(due, outcome);
    if (outcome !== 'unwanted' && 'state' in outcome && outcome.state === 'dropped') {
      log.warn({ mail: due.id, kind: due.kind }, 'a mail was dropped: it is of no use any more, or one too many');
    }
  };

  const worker = createWorker<DueMail>({ name: 'mails', atOnce: DELIVERIES_AT_ONCE, ...rows, work: deliver, log });

  return {
    /** Queues a mail in the caller's transaction. Call `wake` after the commit. */
    enqueue: (tables: AllTables, mailing: Mailing): Promise<void> => rows.insert(tables, mailing),

    /**
     * Writes down that a mail was asked for. The work is the same for every address, known or not: the worker finds out
     * whether there is an account to mail (OWASP ASVS 6.3.8).
     */
    async request(mailing: Pick<Mailing, 'kind' | 'email'>): Promise<void> {
      await database.write((tables) => rows.insert(tables, mailing, { delayMs: REQUEST_DELAY_MS }));
      worker.wake(REQUEST_DELAY_MS);
    },

    wake: (): void => worker.wake(),

    start(): void {
      worker.start();
      const sweep = () => rows.sweep().catch((error: unknown) => log.warn({ err: error }, 'old mails are swept later'));
      sweeper = setInterval(sweep, SWEEP_EVERY_MS * (0.5 + Math.random())).unref();
    },

    /** Takes no more mails and waits for those on their way. */
    async stop(): Promise<void> {
      clearInterval(sweeper);
      await worker.stop();
    },
  };
}

export type Outbox = ReturnType<typeof createOutbox>;

/** Doubling, with jitter, so that a mail server that comes back is not stormed. */
const backoff = (attempts: number): number =>
  Math.min(1000 * 2 ** (attempts - 1), LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);
