import { createOutage } from '../../lib/outage.ts';
import { MailDeferred, MailRefused, MailRejected, type MailTransport } from '../../parts/mail/contract.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Admit } from './admission.ts';
import type { MailComposer } from './composer.ts';
import type { LeasedMail, Outcome } from './outbox-rows.ts';

const MAX_BACKOFF_MS = 10 * 60_000;

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

  /**
   * The first mail rejected since the last delivery. If another one is rejected too, the recipient is not the cause.
   */
  let rejected: string | undefined;
  const concernsAll = (error: unknown, id: string): boolean => {
    if (error instanceof MailDeferred) return false;
    if (!(error instanceof MailRejected)) return true;
    rejected ??= id;
    return rejected !== id;
  };

  const outcomeOf = (error: unknown, { id, kind, attempts }: LeasedMail): Outcome => {
    if (error instanceof MailRefused) {
      log.error({ err: error, mail: id, kind }, 'a mail was refused permanently');
      return { state: 'dead' };
    }
    if (concernsAll(error, id)) {
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
    rejected = undefined;
    outage.succeeded();
    return { state: 'sent' };
  };
}

/** Doubles, with jitter: a recovering mail server does not receive all mails together. */
const backoff = (attempts: number): number =>
  Math.min(1000 * 2 ** (attempts - 1), MAX_BACKOFF_MS) * (0.5 + Math.random() / 2);
