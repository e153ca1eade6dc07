import type { Log } from '../log.ts';
import { createOutage } from '../outage.ts';
import { MailDeferred, MailRefused, type MailTransport } from '../parts/mail/contract.ts';
import type { Admit } from './mail-requests.ts';
import type { MailComposer } from './mails.ts';
import type { LeasedMail, Outcome } from './outbox-rows.ts';

const LONGEST_BACKOFF_MS = 10 * 60_000;

interface Parts {
  admit: Admit;
  compose: MailComposer;
  mail: MailTransport;
  log: Log;
}

/**
 * Attempts to deliver the mail of a row, and answers what becomes of the row. Rejects when the database cannot be used;
 * whatever the mail server does is an outcome.
 */
export function createMailDelivery({ admit, compose, mail, log }: Parts): (row: LeasedMail) => Promise<Outcome> {
  // Of a wrong setting or a server that is down: it concerns all mails.
  const outage = createOutage({
    began: (error) =>
      log.error({ err: error }, 'mails do not go out: check SMTP_URL and MAIL_FROM. They are kept and retried'),
    ended: () => log.info('mails go out again'),
  });

  const outcomeOf = (error: unknown, { id, kind, attempts }: LeasedMail): Outcome => {
    if (error instanceof MailRefused) {
      log.error({ err: error, mail: id, kind }, 'a mail was refused for good');
      return { state: 'dead' };
    }
    if (error instanceof MailDeferred) log.info({ err: error, mail: id }, 'a mail was refused for now, it is retried');
    else {
      log.debug({ err: error, mail: id }, 'a mail did not go out');
      outage.failed(error);
    }
    return { retryInMs: backoff(attempts + 1) };
  };

  const drop = ({ id, kind }: LeasedMail): Outcome => {
    log.warn({ mail: id, kind }, 'a mail is dropped: it has expired, was superseded, or is past a limit');
    return { state: 'dropped' };
  };

  // While instances are replaced one after another, the next that has that secret sends it.
  const leave = ({ id, kind, attempts }: LeasedMail): Outcome => {
    log.warn({ mail: id, kind }, 'a mail waits for a process whose APP_SECRET holds the secret of its token');
    return { retryInMs: backoff(attempts + 1) };
  };

  return async (row) => {
    if (row.expired) return drop(row);
    const admitted = await admit(row);
    if (admitted === 'unwanted') return 'unwanted';
    const message = admitted === 'limited' ? undefined : await compose(admitted);
    if (!message) return drop(row);
    if (message === 'foreign') return leave(row);
    try {
      await mail.send({ id: row.id, ...message });
    } catch (error) {
      return outcomeOf(error, row);
    }
    outage.succeeded();
    return { state: 'sent' };
  };
}

/** Doubling, with jitter: a mail server that comes back does not get all mails at once. */
const backoff = (attempts: number): number =>
  Math.min(1000 * 2 ** (attempts - 1), LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);
