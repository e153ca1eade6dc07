import type { Config } from '../../config/index.ts';
import type { MailTransport } from './contract.ts';
import { mailbox } from './mailbox.ts';
import { smtpTransport } from './smtp.ts';

/** SMTP where SMTP_URL names a server, else a mailbox in DATA_DIR. */
export const openMail = (config: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>): MailTransport =>
  config.smtpUrl ? smtpTransport(config.smtpUrl, config.mailFrom) : mailbox(config.dataDir, config.mailFrom);
