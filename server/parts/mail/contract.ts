/** How many mails one process delivers at once: as many connections as that, so that none waits for another's. */
export const DELIVERIES_AT_ONCE = 10;

export interface Mail {
  /** Unique and stable: a mail that is sent twice carries the same one, so that it can be recognized. */
  id: string;
  to: { address: string };
  subject: string;
  text: string;
  html: string;
}

/** The mail server said that it will never take a mail to this recipient. Any other error of `send` is worth another try. */
export class MailRefused extends Error {
  override name = 'MailRefused';
}

/** The mail server takes no mail to this recipient now, and nothing else is wrong: worth another try. */
export class MailDeferred extends Error {
  override name = 'MailDeferred';
}

export interface MailTransport {
  /** Resolves once the mail is taken over by the other side; rejects within the time limit. */
  send(mail: Mail): Promise<void>;
  close(): void;
}
