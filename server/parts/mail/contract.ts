/** The maximum number of concurrent deliveries of one process, each on its own connection. */
export const DELIVERIES_AT_ONCE = 10;

export interface Mail {
  /** Unique, and the same if a mail is sent twice, so that the recipient's server can deduplicate it. */
  id: string;
  to: { address: string };
  subject: string;
  text: string;
  html: string;
}

/** The sender of mails; the name may be empty. */
export interface Sender {
  name: string;
  address: string;
}

/** The mail server permanently refuses this recipient. After any other error of `send` a retry may succeed. */
export class MailRefused extends Error {
  override name = 'MailRefused';
}

/** The mail server refuses this recipient, and perhaps all others. */
export class MailRejected extends Error {
  override name = 'MailRejected';
}

/** The mail server temporarily refuses this recipient; mails to others may go through. */
export class MailDeferred extends Error {
  override name = 'MailDeferred';
}

export interface MailTransport {
  /** Resolves once the mail server has accepted the mail; rejects at the deadline. */
  send(mail: Mail): Promise<void>;
  close(): void;
}
