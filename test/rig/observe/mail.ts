/** A mail as a test sees it, wherever it is stored. */
export interface Mail {
  /** The recipients of the envelope, not of the header. */
  to: string[];
  /** The address in the From header. */
  from: string;
  subject: string;
  text: string;
  html: string;
  /** The same for two copies of one mail. */
  messageId: string;
}

export interface MailQuery {
  to: string;
  /** A part of the subject, or a pattern for it. */
  subject?: string | RegExp;
}

/** Whether the mail matches the query; addresses are compared case-insensitively. */
export function matches(mail: Mail, { to, subject = '' }: MailQuery): boolean {
  const isRecipient = mail.to.some((address) => address.toLowerCase() === to.toLowerCase());
  return isRecipient && (subject instanceof RegExp ? subject.test(mail.subject) : mail.subject.includes(subject));
}
