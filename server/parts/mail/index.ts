import type { Config } from '../../config/index.ts';
import type { MailTransport } from './contract.ts';

/** SMTP where SMTP_URL names a server, else a mailbox in DATA_DIR. Only the one that is used is loaded. */
export async function openMail({
  smtpUrl,
  mailFrom,
  dataDir,
}: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>): Promise<MailTransport> {
  if (smtpUrl) return (await import('./smtp.ts')).smtpTransport(smtpUrl, mailFrom);
  return (await import('./mailbox.ts')).mailbox(dataDir, mailFrom);
}
