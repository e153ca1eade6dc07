/** The most mails that one process delivers at once, each on a connection of its own. */
export const DELIVERIES_AT_ONCE = 10;

export interface Mail {
  /** Unique, and the same when a mail is sent twice, so that the recipient can recognize it. */
  id: string;
  to: { address: string };
  subject: string;
  text: string;
  html: string;
}

/** Whom mails come from; the name may be empty. */
export interface Sender {
  name: string;
  address: string;
}

/** The mail server refuses this recipient for good. After any other error of `send` a retry may succeed. */
export class MailRefused extends Error {
  override name = 'MailRefused';
}

/** The mail server refuses this recipient for now; mails to others may go through. */
export class MailDeferred extends Error {
  override name = 'MailDeferred';
}

export interface MailTransport {
  /** Resolves once the mail server has accepted the mail; rejects at the deadline. */
  send(mail: Mail): Promise<void>;
  close(): void;
}
