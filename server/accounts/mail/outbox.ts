/**
 * The mail queue. `enqueue` writes a mail in the transaction of the change that it reports; a worker in each process
 * delivers it. A crash loses no mail. After a crash between sending and recording, a mail is sent again, with the same
 * Message-ID and token.
 */
import type { User } from '../../../entities/index.ts';
import type { Rate } from '../../config/index.ts';
import type { AllTables, Database, WriteTables } from '../../parts/database/contract.ts';
import { DELIVERIES_AT_ONCE, type MailTransport } from '../../parts/mail/contract.ts';
import type { Log } from '../../telemetry/log.ts';
import { count, gauges } from '../../telemetry/metrics.ts';
import { inSpan } from '../../telemetry/traces.ts';
import { createWorker } from '../../workers/worker.ts';
import { inboxOf } from '../users/index.ts';
import type { MailAdmission } from './admission.ts';
import type { MailComposer } from './composer.ts';
import { createMailDelivery } from './delivery.ts';
import type { InboxTurns } from './inbox-turns.ts';
import {
  createOutboxRows,
  type LeasedMail,
  type Mailing,
  type MailRequest,
  type Outcome,
  type RequestedMail,
} from './outbox-rows.ts';

/**
 * Requests are processed after the concurrent HTTP responses, so response times do not reveal whether an address has an
 * account.
 */
const REQUEST_DELAY_MS = 500;

interface Parts {
  database: Database;
  /** The limits that count rows. */
  rates: { mail: Rate; inbox: Rate };
  mail: MailTransport;
  admission: Pick<MailAdmission, 'admit' | 'issueWithinLimits'>;
  turns: InboxTurns;
  compose: MailComposer;
  log: Log;
}

/** Creates the queue and its worker in this process. */
export function createOutbox({ database, rates, mail, admission, turns, compose, log }: Parts) {
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

  const deliver = async (row: LeasedMail, requireLease: () => void) => {
    const outcome = await attempt(row, requireLease);
    countAttempt(nameOf(outcome));
    await rows.settle(row, outcome);
  };

  const worker = createWorker({
    name: 'mails',
    atOnce: DELIVERIES_AT_ONCE,
    leases: rows.leases,
    work: (row, requireLease) => inSpan(`deliver ${row.kind}`, traceOf(row), () => deliver(row, requireLease)),
    log,
  });

  const requestIn = async (
    tables: WriteTables,
    mailing: RequestedMail & { id?: string },
    request: MailRequest,
  ): Promise<void> => {
    await rows.insert(tables, mailing, request, { delayMs: REQUEST_DELAY_MS });
  };
  const wakeForRequest = (): void => worker.wake(REQUEST_DELAY_MS);

  return {
    /** Queues a mail in the caller's transaction, in the language of `request`. Call `wake` after the commit. */
    async enqueue(tables: AllTables, mailing: Mailing, request: MailRequest): Promise<void> {
      await rows.insert(tables, mailing, request);
    },

    /**
     * Runs a transaction that inserts a user; its `queueMail` queues the first mail. If a worker is free, the mail is
     * admitted in that transaction and inserted with a lease, and is delivered at once; otherwise it becomes a request.
     */
    async withFirstMail(
      user: User,
      purpose: 'verify-email',
      request: MailRequest,
      transact: (queueMail: (tables: AllTables) => Promise<void>) => Promise<void>,
    ): Promise<void> {
      const freePlace = worker.reserve();
      const release = freePlace && turns.tryHold(inboxOf(user.email));
      let mail: LeasedMail | undefined;
      const leasedAt = performance.now();
      try {
        await transact(async (tables) => {
          const tokenId = release && (await admission.issueWithinLimits(tables, user, purpose, request.returnTo));
          const mailing = { kind: purpose, email: user.email, ...(tokenId && { userId: user.id, tokenId }) };
          mail = await rows.insert(tables, mailing, request, { isLeased: Boolean(tokenId) });
        });
      } finally {
        release?.();
        freePlace?.();
      }
      if (mail?.tokenId) worker.begin(mail, leasedAt);
      else worker.wake();
    },

    /**
     * Queues a mail request. The work is equal for known and unknown addresses: only the worker looks for an account
     * (OWASP ASVS 6.3.8).
     */
    async request(mailing: RequestedMail & { id?: string }, request: MailRequest): Promise<void> {
      const insert = (tables: WriteTables) => requestIn(tables, mailing, request);
      await (request.returnTo !== undefined ? database.change(insert) : database.write(insert));
      wakeForRequest();
    },

    /** The same in the caller's transaction. Call `wakeForRequest` after the commit. */
    requestIn,
    wakeForRequest,

    removeAllOf: rows.removeAllOf,
    sweep: rows.sweep,
    wake: (): void => worker.wake(),
    start: worker.start,
    /** Stops sending and waits for mails in flight. */
    stop: worker.stop,
  };
}

/** For the metrics. */
const outcomes = ['sent', 'retried', 'dead', 'dropped', 'unwanted'] as const;

const nameOf = (outcome: Outcome): string => {
  if (outcome === 'unwanted') return outcome;
  return 'state' in outcome ? outcome.state : 'retried';
};

/** The delivery belongs to the trace of the request that caused the mail, however late it is. */
const traceOf = ({ id, traceparent }: LeasedMail) => ({
  kind: 'consumer' as const,
  attributes: { 'messaging.operation.name': 'deliver', 'messaging.message.id': id },
  continues: { traceparent: traceparent ?? undefined },
});

export type Outbox = ReturnType<typeof createOutbox>;
