import { createOutage } from '../../lib/outage.ts';
import { MailDeferred, MailRefused, MailRejected, type MailTransport } from '../../parts/mail/contract.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Admit } from './admission.ts';
import type { MailComposer } from './composer.ts';
import type { LeasedMail, Outcome } from './outbox-rows.ts';

const MAX_BACKOFF_MS = 10 * 60_000;
/** Recipients in a row that may be refused permanently, or temporarily (greylisting), without an outage. */
const MAX_REJECTED = 1;
const MAX_DEFERRED = 4;

interface Parts {
  admit: Admit;
  compose: MailComposer;
  mail: MailTransport;
  log: Log;
}

/**
 * Attempts to deliver a mail. Resolves to its outcome, even if the mail server fails. Rejects if the database is
 * unavailable, and with `requireLease`.
 */
export function createMailDelivery({
  admit,
  compose,
  mail,
  log,
}: Parts): (row: LeasedMail, requireLease: () => void) => Promise<Outcome> {
  // A wrong setting or an unavailable mail server: concerns all mails.
  const outage = createOutage({
    began: (error) =>
      log.error({ err: error }, 'mails cannot be sent: check SMTP_URL and MAIL_FROM. They are kept and retried'),
    ended: () => log.info('mails are sent again'),
  });

  /** The addresses refused since the last delivery: if several are, the recipients are not the cause. */
  const rejected = new Set<string>();
  const deferred = new Set<string>();
  const concernsAll = (error: unknown, { email }: LeasedMail): boolean => {
    if (error instanceof MailRejected) return exceeds(rejected, MAX_REJECTED, email);
    if (error instanceof MailDeferred) return exceeds(deferred, MAX_DEFERRED, email);
    return true;
  };

  const outcomeOf = (error: unknown, row: LeasedMail): Outcome => {
    const { id, kind, attempts } = row;
    if (error instanceof MailRefused) {
      log.error({ err: error, mail: id, kind }, 'a mail was refused permanently');
      return { state: 'dead' };
    }
    if (concernsAll(error, row)) {
      log.debug({ err: error, mail: id }, 'a mail was not sent');
      outage.failed(error);
    } else log.info({ err: error, mail: id }, 'a mail was refused temporarily and will be retried');
    return { retryInMs: backoff(attempts + 1) };
  };

  const drop = ({ id, kind }: LeasedMail): Outcome => {
    log.warn({ mail: id, kind }, 'a mail was dropped: it has expired, was superseded, or exceeds a limit');
    return { state: 'dropped' };
  };

  // During a rolling restart, another instance with that secret sends it.
  const leave = ({ id, kind, attempts }: LeasedMail): Outcome => {
    log.warn({ mail: id, kind }, 'a mail waits for a process with the APP_SECRET of its token');
    return { retryInMs: backoff(attempts + 1) };
  };

  return async (row, requireLease) => {
    if (row.expired) return drop(row);
    const admitted = await admit(row);
    if (admitted === 'unwanted') return 'unwanted';
    const message = admitted === 'limited' ? undefined : await compose(admitted);
    if (!message) return drop(row);
    if (message === 'otherKey') return leave(row);
    requireLease();
    try {
      await mail.send({ id: row.id, ...message });
    } catch (error) {
      return outcomeOf(error, row);
    }
    rejected.clear();
    deferred.clear();
    outage.succeeded();
    return { state: 'sent' };
  };
}

/** Adds the address. Returns whether there are more than `most`. */
const exceeds = (addresses: Set<string>, most: number, address: string): boolean => {
  if (addresses.size <= most) addresses.add(address);
  return addresses.size > most;
};

/** Doubles, with jitter: a recovering mail server does not receive all mails together. */
const backoff = (attempts: number): number =>
  Math.min(1000 * 2 ** (attempts - 1), MAX_BACKOFF_MS) * (0.5 + Math.random() / 2);
