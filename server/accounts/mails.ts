import type { MailKind, OutboxMail } from '../../entities/index.ts';
import { pagePaths } from '../page-paths.ts';
import type { Database } from '../parts/database/contract.ts';
import type { Mail } from '../parts/mail/contract.ts';
import { isTokenPurpose, type OneTimeTokens } from './one-time-tokens.ts';
import type { Users } from './users.ts';

type Message = Omit<Mail, 'id'>;

const GREETING = 'Hello,';

interface Content {
  subject: string;
  paragraphs: string[];
  button?: { label: string; url: string };
  closing: string;
}

interface Setting {
  /** Host of the public address. */
  site: string;
  appUrl: string;
  /** For kinds of mail with a token. */
  link: string;
  detail: string;
}

/** The content of each kind of mail. */
const contents: Record<MailKind, (setting: Setting) => Content> = {
  'verify-email': ({ site, link }) => ({
    subject: `Verify your email for ${site}`,
    paragraphs: [`Please confirm that this address is yours, so that you can log in to ${site}.`],
    button: { label: 'Verify email', url: link },
    closing: 'The link works once and for 24 hours. If you did not create an account, you can ignore this mail.',
  }),
  'reset-password': ({ site, link }) => ({
    subject: `Reset your password for ${site}`,
    paragraphs: [`A new password was asked for, for your account at ${site}.`],
    button: { label: 'Set new password', url: link },
    closing:
      'The link works once and for one hour. If you did not ask for it, you can ignore this mail: your password stays.',
  }),
  'password-changed': ({ site }) => ({
    subject: `Your password for ${site} was changed`,
    paragraphs: [
      `The password of your account at ${site} was just changed, and every device was logged out.`,
      'If that was not you, ask for a new password at once: the person who did it can read your mail.',
    ],
    closing: 'You need not do anything if you changed it yourself.',
  }),
  'login-methods-removed': ({ site, appUrl, detail }) => ({
    subject: `Ways to log in to ${site} were removed`,
    paragraphs: [
      `Your account at ${site} could also be opened ${inWords(detail)}. We have no proof that you added that yourself, so it was removed, and every device was logged out.`,
      'If it was yours, add it again: ask for a new password, or log in through the provider once more.',
    ],
    button: { label: 'Set a password', url: appUrl + pagePaths.forgotPassword },
    closing: 'You need not do anything if you did not add it.',
  }),
};

/** `password,github` in plain words. */
const inWords = (methods: string): string =>
  methods
    .split(',')
    .map((method) => (method === 'password' ? 'by a password' : `through ${method}`))
    .join(' and ');

const pages: Partial<Record<MailKind, (token: string, email: string) => string>> = {
  'verify-email': (token) => `${pagePaths.verifyEmail}?token=${token}`,
  'reset-password': (token, email) => `${pagePaths.resetPassword}?token=${token}&email=${encodeURIComponent(email)}`,
};

interface Parts {
  appUrl: string;
  database: Database;
  users: Users;
  tokens: OneTimeTokens;
}

export type MailComposer = (
  due: Pick<OutboxMail, 'kind' | 'email' | 'userId' | 'tokenId' | 'detail'>,
) => Promise<Message | undefined>;

/**
 * Makes the mail of an outbox row, or undefined when the user is deleted or the token was replaced. Links start with
 * the configured public address, never with the Host of a request.
 */
export const createMailComposer =
  ({ appUrl, database, users, tokens }: Parts): MailComposer =>
  async ({ kind, email: asked, userId, tokenId, detail }) => {
    const user = userId ? await users.find(userId) : undefined;
    // A row of the release before, which may still run, names the user alone.
    const email = asked || user?.email;
    if (!email) return undefined;
    const page = pages[kind];
    if (page && !(user && tokenId && (await database.query((tables) => tokens.isCurrent(tables, tokenId))))) {
      return undefined;
    }
    const token = tokenId && isTokenPurpose(kind) ? tokens.derive(kind, tokenId) : '';
    const link = page ? appUrl + page(token, email) : '';
    return render(email, contents[kind]({ site: new URL(appUrl).host, appUrl, link, detail: detail ?? '' }));
  };

/** No mail carries a name: the user who registered the address chose it, who need not be its owner, confirmed or not. */
function render(email: string, { subject, paragraphs, button, closing }: Content): Message {
  const text = [GREETING, ...paragraphs, ...(button ? [`${button.label}:\n${button.url}`] : []), closing].join('\n\n');
  return {
    to: { address: email },
    subject,
    text: `${text}\n`,
    html: renderHtml(subject, paragraphs, button, closing),
  };
}

const font = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:16px;line-height:1.5";

/** Tables and inline styles, because all mail programs support them. Everything variable is escaped. */
function renderHtml(subject: string, paragraphs: string[], button: Content['button'], closing: string): string {
  const paragraph = (words: string) => `<p style="margin:0 0 16px">${escapeHtml(words)}</p>`;
  const action = button
    ? `<p style="margin:24px 0"><a href="${escapeHtml(button.url)}" style="display:inline-block;padding:12px 24px;border-radius:6px;background:#1d4ed8;color:#ffffff;font-weight:600;text-decoration:none">${escapeHtml(button.label)}</a></p>
<p style="margin:0 0 16px;font-size:14px;color:#52525b">If the button does not work, open this address:<br><a href="${escapeHtml(button.url)}" style="color:#1d4ed8;word-break:break-all">${escapeHtml(button.url)}</a></p>`
    : '';
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(subject)}</title></head>
<body style="margin:0;padding:0;background:#f4f4f5">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:#f4f4f5"><tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:560px;background:#ffffff;border-radius:8px"><tr><td style="padding:32px;color:#18181b;${font}">
${paragraph(GREETING)}
${paragraphs.map(paragraph).join('\n')}
${action}
<p style="margin:0;font-size:14px;color:#52525b">${escapeHtml(closing)}</p>
</td></tr></table>
</td></tr></table>
</body>
</html>
`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Escapes for text and for quoted attributes. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? sign);
