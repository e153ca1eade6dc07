import type { User } from '../../entities/index.ts';
import type { Rate } from '../config/index.ts';
import type { Log } from '../log.ts';
import type { AllTables, Database, WriteTables } from '../parts/database/contract.ts';
import { DELIVERIES_AT_ONCE, type MailTransport } from '../parts/mail/contract.ts';
import { count, gauges } from '../telemetry/metrics.ts';
import { inSpan } from '../telemetry/traces.ts';
import { createWorker } from '../workers/worker.ts';
import type { InboxTurns } from './inbox-turns.ts';
import { createMailDelivery } from './mail-delivery.ts';
import type { TokenPurpose } from './mail-kinds.ts';
import type { MailAdmission } from './mail-requests.ts';
import type { MailComposer } from './mails.ts';
import { createOutboxRows, type LeasedMail, type Mailing, type MailRequest, type Outcome } from './outbox-rows.ts';
import { inboxOf } from './text-rules.ts';

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
  admission: Pick<MailAdmission, 'admit' | 'issueWithinLimits'>;
  turns: InboxTurns;
  compose: MailComposer;
  /** What else is deleted by and by, beside old mails. */
  sweeps: (() => Promise<void>)[];
  log: Log;
}

/**
 * The queue of mails. `enqueue` writes one in the transaction of the change that it announces; the worker of each
 * process delivers. After a crash a mail may be sent twice, with the same Message-ID and the same token; it is never
 * lost.
 */
export function createOutbox({ database, rates, mail, admission, turns, compose, sweeps, log }: Parts) {
  const rows = createOutboxRows(database, { countedMs: Math.max(rates.mail.seconds, rates.inbox.seconds) * 1000 });
  const attempt = createMailDelivery({ admit: admission.admit, compose, mail, log });

  gauges(async () => {
    const { pending, due, oldestMs } = await rows.backlog();
    return {
      account_outbox_pending_mails: pending,
      account_outbox_due_mails: due,
      account_outbox_oldest_age_seconds: oldestMs / 1000,
    };
  });

  const countAttempt = (outcome: string, by?: number) => count('account_mail_attempts_total', { outcome }, by);
  for (const outcome of outcomes) countAttempt(outcome, 0);

  const deliver = async (row: LeasedMail) => {
    const outcome = await attempt(row);
    countAttempt(nameOf(outcome));
    await rows.settle(row, outcome);
  };

  const worker = createWorker({
    name: 'mails',
    atOnce: DELIVERIES_AT_ONCE,
    leases: rows.leases,
    work: (row) => inSpan(`deliver ${row.kind}`, traceOf(row), () => deliver(row)),
    async sweep() {
      for (const sweep of [rows.sweep, ...sweeps]) await sweep();
    },
    log,
  });

  return {
    /** Queues a mail in the caller's transaction, in the language of `request`. Call `wake` after the commit. */
    async enqueue(tables: AllTables, mailing: Mailing, request: MailRequest): Promise<void> {
      await rows.insert(tables, mailing, request);
    },

    /**
     * Runs a transaction that inserts a user and calls `welcome`, which queues the user's first mail, and delivers that
     * after the commit. Usually the mail is admitted in the same transaction and needs no lease: it is this process's from
     * the beginning. Where that is not possible at this moment, it is a request like any other.
     */
    async welcoming(
      user: User,
      purpose: TokenPurpose,
      request: MailRequest,
      transact: (welcome: (tables: AllTables) => Promise<void>) => Promise<void>,
    ): Promise<void> {
      const freePlace = worker.reserve();
      const release = freePlace && turns.tryHold(inboxOf(user.email));
      let mail: LeasedMail | undefined;
      try {
        await transact(async (tables) => {
          const tokenId = release && (await admission.issueWithinLimits(tables, user, purpose));
          const mailing = { kind: purpose, email: user.email, ...(tokenId && { userId: user.id, tokenId }) };
          mail = await rows.insert(tables, mailing, request, { isLeased: Boolean(tokenId) });
        });
      } finally {
        release?.();
        freePlace?.();
      }
      if (mail?.tokenId) worker.begin(mail);
      else worker.wake();
    },

    /**
     * Queues the request for a mail. The work is the same for every address, known or not: the worker finds out whether
     * there is an account to mail (OWASP ASVS 6.3.8). `beside` is written in the same transaction.
     */
    async request(
      mailing: Pick<Mailing, 'kind' | 'email' | 'userId'>,
      request: MailRequest,
      beside?: (tables: AllTables) => Promise<void>,
    ): Promise<void> {
      const insert = (tables: WriteTables) => rows.insert(tables, mailing, request, { delayMs: REQUEST_DELAY_MS });
      await (beside
        ? database.change(async (tables) => {
            await insert(tables);
            await beside(tables);
          })
        : database.write(insert));
      worker.wake(REQUEST_DELAY_MS);
    },

    removeAllOf: rows.removeAllOf,
    wake: (): void => worker.wake(),
    start: worker.start,
    /** Sends no more mails and waits for those on their way. */
    stop: worker.stop,
  };
}

/** For the metrics. */
const outcomes = ['sent', 'retried', 'dead', 'dropped', 'unwanted'] as const;

const nameOf = (outcome: Outcome): string => {
  if (outcome === 'unwanted') return outcome;
  return 'state' in outcome ? outcome.state : 'retried';
};

/** The delivery is part of the trace of the request that the mail is sent for, however much later. */
const traceOf = ({ id, traceparent }: LeasedMail) => ({
  kind: 'consumer' as const,
  attributes: { 'messaging.operation.name': 'deliver', 'messaging.message.id': id },
  continues: { traceparent: traceparent ?? undefined },
});

export type Outbox = ReturnType<typeof createOutbox>;
