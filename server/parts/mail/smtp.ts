/*
 * Any other 5yz reply to RCPT TO may come from a relay that does not accept the service: one wrong setting must not
 * lose all mails. Replies to other commands, 530 (authentication required) and codes unknown to SMTP concern all mails.
 */

import type { SendMailOptions, Transporter } from 'nodemailer';
import { lazy } from '../../lib/lazy.ts';
import { inSpan } from '../../telemetry/traces.ts';
import {
  DELIVERIES_AT_ONCE,
  type Mail,
  MailDeferred,
  MailRefused,
  MailRejected,
  type MailTransport,
  type Sender,
} from './contract.ts';

/** The deadline for the whole delivery of one mail. */
const DELIVERY_LIMIT_MS = 45_000;

interface SmtpTransport extends MailTransport {
  /** Resolves once the server has accepted the credentials; sends no mail. */
  verify(): Promise<void>;
}

export function smtpTransport(url: string, from: Sender, limitMs = DELIVERY_LIMIT_MS): SmtpTransport {
  let opened: Transporter | undefined;
  // Loaded with the first mail.
  const transport = lazy(async () => {
    const { createTransport } = await import('nodemailer');
    opened = createTransport({
      url,
      pool: true,
      maxConnections: DELIVERIES_AT_ONCE,
      connectionTimeout: 10_000,
      greetingTimeout: 10_000,
      socketTimeout: limitMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    return opened;
  });
  const { hostname, port, protocol } = new URL(url);
  const span = {
    kind: 'client',
    attributes: {
      'messaging.system': 'smtp',
      'server.address': hostname,
      // Nodemailer's own defaults.
      'server.port': Number(port) || (protocol === 'smtps:' ? 465 : 587),
    },
  } as const;
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);

  return {
    async send({ id, to, subject, text, html }: Mail) {
      const abort = new AbortController();
      const timer = setTimeout(() => abort.abort(new Error('the mail server took too long')), limitMs);
      const message: SendMailOptions = {
        // Objects and an explicit envelope: a string would be parsed, and could contain a second sender or recipient.
        from,
        to,
        envelope: { from: from.address, to: [to.address] },
        messageId: `<${id}@${domain}>`,
        subject,
        text,
        html,
        headers: { 'Auto-Submitted': 'auto-generated' },
        // A delivery past its deadline is aborted: otherwise the pool would send the mail in addition to its retry.
        signal: abort.signal,
      };
      try {
        await inSpan('send', span, async () => (await transport()).sendMail(message));
      } catch (error) {
        throw verdictOnRecipient(error) ?? error;
      } finally {
        clearTimeout(timer);
      }
    },

    async verify() {
      await (await transport()).verify();
    },

    close: () => opened?.close(),
  };
}

/** RFC 3463: the recipient's address (5.1.x except 5.1.7 and 5.1.8, the sender's) or mailbox (5.2.x). */
const RECIPIENT_REFUSED = /^5\d\d[ -]5\.(?:1\.(?!0*[78]\b)|2\.)\d/;

/**
 * Classifies the reply to RCPT TO (RFC 5321 section 4.2.1): 4yz is temporary, 5yz is permanent only if its enhanced
 * code concerns the recipient.
 */
function verdictOnRecipient(error: unknown): MailRefused | MailRejected | MailDeferred | undefined {
  const { command, responseCode = 0, response = '' } = error as Partial<Answer>;
  if (command !== 'RCPT TO' || responseCode < 400 || responseCode > 599 || responseCode === 530) return undefined;
  if (responseCode < 500) {
    return new MailDeferred('the mail server temporarily refused the recipient', { cause: error });
  }
  return RECIPIENT_REFUSED.test(response)
    ? new MailRefused('the mail server refused the recipient', { cause: error })
    : new MailRejected('the mail server refused the recipient, or all mails of the service', { cause: error });
}

/** The server's reply, as nodemailer's errors contain it. */
interface Answer {
  command: string;
  responseCode: number;
  response: string;
}
