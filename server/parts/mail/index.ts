import type { Config } from '../../config/index.ts';
import type { MailTransport } from './contract.ts';

/** SMTP if SMTP_URL is set, else a mailbox in DATA_DIR. Loads only the one in use. */
export async function openMail({
  smtpUrl,
  mailFrom,
  dataDir,
}: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>): Promise<MailTransport> {
  if (smtpUrl) return (await import('./smtp.ts')).smtpTransport(smtpUrl, mailFrom);
  return (await import('./mailbox.ts')).mailbox(dataDir, mailFrom);
}
