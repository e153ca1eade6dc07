import type { Rate } from '../config/index.ts';
import type { Log } from '../log.ts';
import type { AllTables, Database } from '../parts/database/contract.ts';
import { DELIVERIES_AT_ONCE, type MailTransport } from '../parts/mail/contract.ts';
import { createWorker } from '../workers/worker.ts';
import { createMailDelivery } from './mail-delivery.ts';
import type { Admit } from './mail-requests.ts';
import type { MailComposer } from './mails.ts';
import { createOutboxRows, type Mailing } from './outbox-rows.ts';

/**
 * A request is worked on only after the HTTP requests of the same moment have been answered: the work for an address
 * that has an account slows none of them, so their duration does not reveal it.
 */
const REQUEST_DELAY_MS = 500;

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
 * The queue of mails. `enqueue` writes one in the transaction of the change that it announces; the worker of each
 * process delivers. After a crash a mail may be sent twice, with the same Message-ID and the same token; it is never
 * lost.
 */
export function createOutbox({ database, rates, mail, admit, compose, log }: Parts) {
  const rows = createOutboxRows(database, { countedMs: Math.max(rates.mail.seconds, rates.inbox.seconds) * 1000 });
  const attempt = createMailDelivery({ admit, compose, mail, log });

  const worker = createWorker({
    name: 'mails',
    atOnce: DELIVERIES_AT_ONCE,
    leases: rows.leases,
    work: async (row) => rows.settle(row, await attempt(row)),
    sweep: rows.sweep,
    log,
  });

  return {
    /** Queues a mail in the caller's transaction. Call `wake` after the commit. */
    enqueue: (tables: AllTables, mailing: Mailing): Promise<void> => rows.insert(tables, mailing),

    /**
     * Queues the request for a mail. The work is the same for every address, known or not: the worker finds out whether
     * there is an account to mail (OWASP ASVS 6.3.8).
     */
    async request(mailing: Pick<Mailing, 'kind' | 'email'>): Promise<void> {
      await database.write((tables) => rows.insert(tables, mailing, { delayMs: REQUEST_DELAY_MS }));
      worker.wake(REQUEST_DELAY_MS);
    },

    wake: (): void => worker.wake(),
    start: worker.start,
    /** Sends no more mails and waits for those on their way. */
    stop: worker.stop,
  };
}

export type Outbox = ReturnType<typeof createOutbox>;
