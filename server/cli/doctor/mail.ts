import { smtpTransport } from '../../parts/mail/smtp.ts';
import { sentenceOf } from '../../telemetry/log.ts';
import { type Check, ok, problem } from './finding.ts';

export const checkMail: Check = async function* ({ smtpUrl, mailFrom }) {
  if (!smtpUrl) {
    yield ok('embedded: the mailbox at /dev/mail');
    return;
  }
  const mail = smtpTransport(smtpUrl, mailFrom);
  try {
    await mail.verify();
    yield ok(new URL(smtpUrl).username ? 'it accepts our login' : 'it answers; SMTP_URL has no login');
  } catch (error) {
    const isLogin = (error as { code?: string }).code === 'EAUTH';
    yield problem(
      sentenceOf(error),
      isLogin
        ? 'SMTP_URL must have the user and password of an account that may send as MAIL_FROM'
        : 'SMTP_URL must name the mail server and its port: smtps:// for 465, smtp:// for 587',
    );
  } finally {
    mail.close();
  }
};
