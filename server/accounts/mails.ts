import type { Database } from '../parts/database/contract.ts';
import type { Mail } from '../parts/mail/contract.ts';
import { isTokenPurpose, type MailContent, mailKinds } from './mail-kinds.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';
import type { LeasedMail } from './outbox-rows.ts';
import type { Users } from './users.ts';

type Message = Omit<Mail, 'id'>;

const GREETING = 'Hello,';

interface Parts {
  appUrl: string;
  database: Database;
  users: Users;
  tokens: OneTimeTokens;
}

/**
 * The mail of an outbox row; undefined when the token was used, replaced, or deleted with its user; `foreign` when only a
 * process with another APP_SECRET can derive it.
 */
export type MailComposer = (row: LeasedMail) => Promise<Message | 'foreign' | undefined>;

/** Links start with the configured public address, never with the Host of a request. */
export const createMailComposer = ({ appUrl, database, users, tokens }: Parts): MailComposer => {
  const site = new URL(appUrl).host;

  // A row of the release before, which may still run, names the user alone.
  const addressOf = async (userId: LeasedMail['userId']) => (userId ? (await users.find(userId))?.email : undefined);

  return async ({ kind, email: asked, userId, tokenId, detail, isNew }) => {
    const email = asked || (await addressOf(userId));
    if (!email) return undefined;
    const { content, token: linked } = mailKinds[kind];
    const setting = { site, appUrl, link: '', detail: detail ?? '' };
    if (!linked || !isTokenPurpose(kind)) return render(email, content(setting));
    if (!tokenId) return undefined;
    const found = isNew
      ? { token: tokens.derive(kind, tokenId) }
      : await database.query((tables) => tokens.deriveAgain(tables, kind, tokenId));
    if (!found || found === 'foreign') return found;
    const link = appUrl + linked.page(found.token, email);
    return render(email, content({ ...setting, link }));
  };
};

/**
 * No mail carries a name: the user who registered the address chose it, who need not be its owner, confirmed or not.
 */
function render(email: string, { subject, paragraphs, button, closing }: MailContent): Message {
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
function renderHtml(subject: string, paragraphs: string[], button: MailContent['button'], closing: string): string {
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

/** For text and for quoted attributes. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? sign);
