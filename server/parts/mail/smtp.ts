import type { SendMailOptions, Transporter } from 'nodemailer';
import { lazy } from '../../lazy.ts';
import { inSpan } from '../../telemetry/traces.ts';
import {
  DELIVERIES_AT_ONCE,
  type Mail,
  MailDeferred,
  MailRefused,
  type MailTransport,
  type Sender,
} from './contract.ts';

/** The deadline for the whole delivery of one mail. */
const DELIVERY_LIMIT_MS = 45_000;

interface SmtpTransport extends MailTransport {
  /** Resolves once the server has taken our credentials; sends no mail. */
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
  const span = {
    kind: 'client',
    attributes: { 'messaging.system': 'smtp', 'server.address': new URL(url).hostname },
  } as const;
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);

  return {
    async send({ id, to, subject, text, html }: Mail) {
      const abort = new AbortController();
      const timer = setTimeout(() => abort.abort(new Error('the mail server took too long')), limitMs);
      const message: SendMailOptions = {
        // Objects and an explicit envelope: a string would be parsed, and could name a second sender or recipient.
        from,
        to,
        envelope: { from: from.address, to: [to.address] },
        messageId: `<${id}@${domain}>`,
        subject,
        text,
        html,
        headers: { 'Auto-Submitted': 'auto-generated' },
        // Past its deadline the delivery is aborted: left in the pool, the mail would be sent in addition to its retry.
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

/**
 * For an error that concerns the recipient alone: 5yz is final, 4yz temporary (RFC 5321 section 4.2.1). Any other may
 * be caused by a setting: the sender, the credentials, or a relay that does not accept us (530; RFC 3463: 5.7.x). One
 * wrong setting must not lose all mails.
 */
function verdictOnRecipient(error: unknown): MailRefused | MailDeferred | undefined {
  const { command, responseCode = 0, response = '' } = error as Partial<Answer>;
  const isPolicy = responseCode === 530 || /^5\d\d[ -]5\.7\.\d/.test(response);
  if (command !== 'RCPT TO' || responseCode < 400 || isPolicy) return undefined;
  return responseCode >= 500
    ? new MailRefused('the mail server refused the recipient', { cause: error })
    : new MailDeferred('the mail server does not take mails to the recipient now', { cause: error });
}

/** The server's answer, as nodemailer's errors contain it. */
interface Answer {
  command: string;
  responseCode: number;
  response: string;
}
