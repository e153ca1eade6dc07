import { brandLinks } from '../brand-links.ts';
import type { Brand } from '../config/brand.ts';
import { escapeHtml } from '../escape-html.ts';
import type { Database } from '../parts/database/contract.ts';
import type { Mail } from '../parts/mail/contract.ts';
import { type Texts, writer } from '../texts/index.ts';
import { defaultLanguage, isLanguage, type Language } from '../texts/languages.ts';
import type { EmailChangeRows } from './email-change-rows.ts';
import type { InvitationRows } from './invitation-rows.ts';
import { buttonPages, isChangePurpose, isInvitation, isTokenPurpose, mailKinds } from './mail-kinds.ts';
import type { MailWords } from './mail-words.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';
import type { LeasedMail } from './outbox-rows.ts';
import type { Users } from './users.ts';

type Message = Omit<Mail, 'id'>;

interface Parts {
  appUrl: string;
  /** What the service is called. */
  site: string;
  brand: Brand;
  texts: Texts;
  database: Database;
  users: Pick<Users, 'find' | 'languagesOf'>;
  tokens: OneTimeTokens;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
}

/**
 * The mail of an outbox row; undefined when the token was used, replaced, or deleted with its user; `foreign` when only a
 * process with another APP_SECRET can derive it.
 */
export type MailComposer = (row: LeasedMail) => Promise<Message | 'foreign' | undefined>;

/** Links start with the configured public address, never with the Host of a request. */
export const createMailComposer = ({
  appUrl,
  site,
  brand,
  texts,
  database,
  users,
  tokens,
  emailChanges,
  invitations,
}: Parts): MailComposer => {
  const render = renderer(frameOf(brand, { site, appUrl }));

  // A row of the release before, which may still run, names the user alone.
  const addressOf = async (userId: LeasedMail['userId']) => (userId ? (await users.find(userId))?.email : undefined);

  const tokenOf = async ({ kind, isNew }: LeasedMail, tokenId: string) => {
    if (isChangePurpose(kind)) return database.query((tables) => emailChanges.deriveAgain(tables, kind, tokenId));
    if (isInvitation(kind)) return database.query((tables) => invitations.deriveAgain(tables, tokenId));
    if (!isTokenPurpose(kind)) return undefined;
    return isNew
      ? { token: tokens.derive(kind, tokenId) }
      : database.query((tables) => tokens.deriveAgain(tables, kind, tokenId));
  };

  /**
   * The user's choice, else the language of the request that the mail answers, else that of the browser of the last login. An
   * `owner` is told of the request of another user.
   */
  const languageOf = async ({ userId, language, isNew }: LeasedMail, owner?: { email: string }): Promise<Language> => {
    const reader = owner ?? (userId && { id: userId });
    // A user who was inserted just now has chosen none.
    const user = reader && !isNew ? await users.languagesOf(reader) : undefined;
    // A row may be of the release after, which knows more languages.
    const others = owner ? [user?.browserLanguage, language] : [language, user?.browserLanguage];
    return [user?.language, ...others].find(isLanguage) ?? defaultLanguage;
  };

  return async (row) => {
    const email = row.email || (await addressOf(row.userId));
    if (!email) return undefined;
    const { token, changeToken, invitationToken } = mailKinds[row.kind];
    const linked = token ?? changeToken ?? invitationToken;
    const found = linked && (row.tokenId ? await tokenOf(row, row.tokenId) : undefined);
    if (linked && (!found || found === 'foreign')) return found;
    const link = linked && typeof found === 'object' ? appUrl + linked.page(found.token, email) : '';
    const language = await languageOf(row, found === 'taken' ? { email } : undefined);
    const words = { language, write: writer(texts, language) };
    return render(email, contentOf(row, { site, appUrl, link }, words), words);
  };
};

interface Setting {
  /** What the service is called: APP_NAME, or the host of the public address. */
  site: string;
  appUrl: string;
  /** Of a mail with a token: its page, with the token. Otherwise, and where the owner of the address is only told, empty. */
  link: string;
}

/** What a mail says. */
interface MailContent {
  subject: string;
  paragraphs: string[];
  button: { label: string; url: string } | undefined;
  closing: string;
}

function contentOf({ kind, detail }: LeasedMail, { site, appUrl, link }: Setting, words: MailWords): MailContent {
  const { write } = words;
  const about = detail ?? '';
  const { message, values: valuesOf } = mailKinds[kind];
  const { texts, button } = typeof message === 'object' ? message : message({ detail: about, hasLink: link !== '' });
  const values = { site, ...valuesOf?.(about, words) };
  const page = button && buttonPages[button];
  return {
    subject: write(`mails.${texts}.subject`, values),
    paragraphs: write(`mails.${texts}.body`, values).split('\n\n'),
    button: button && { label: write(`mails.buttons.${button}`), url: page ? appUrl + page : link },
    closing: write(`mails.${texts}.closing`, values),
  };
}

/** What is the same in all mails. Every address is absolute. */
interface Frame {
  site: string;
  logo: string | undefined;
  /** Of buttons, with white labels, and of links. */
  accent: string;
  links: ReturnType<typeof brandLinks>;
}

const DEFAULT_ACCENT = '#1d4ed8';

function frameOf({ logo, colors, ...pages }: Brand, { site, appUrl }: Pick<Frame, 'site'> & { appUrl: string }): Frame {
  const absolute = (url: string) => new URL(url, appUrl).href;
  return {
    site,
    logo: logo && absolute(logo),
    accent: colors?.light.accent ?? DEFAULT_ACCENT,
    links: brandLinks(pages).map(({ name, url }) => ({ name, url: absolute(url) })),
  };
}

/**
 * No mail carries the name of a user: the user who registered the address chose it, who need not be its owner, confirmed or
 * not.
 */
const renderer =
  (frame: Frame) =>
  (email: string, content: MailContent, words: MailWords): Message => {
    const { write } = words;
    const { subject, paragraphs, button, closing } = content;
    const greeting = write('mails.frame.greeting');
    const links = frame.links.map(({ name, url }) => ({ label: write(`common.brandLinks.${name}`), url }));
    const action = button ? [write('mails.frame.action', button)] : [];
    const footer = links
      .map(({ label, url }) => write('mails.frame.link', { label, url: url.replace(/^mailto:([^?]*).*$/, '$1') }))
      .join('\n');
    const parts = [greeting, ...paragraphs, ...action, closing, ...(footer ? [footer] : [])];
    return {
      to: { address: email },
      subject,
      text: `${parts.join('\n\n')}\n`,
      html: renderHtml({ ...frame, links }, content, words),
    };
  };

const font = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:16px;line-height:1.5";

/** Tables and inline styles, because all mail programs support them. Everything variable is escaped. */
function renderHtml(
  { site, logo, accent, links }: Omit<Frame, 'links'> & { links: { label: string; url: string }[] },
  { subject, paragraphs, button, closing }: MailContent,
  { write, language }: MailWords,
): string {
  const paragraph = (words: string) => `<p style="margin:0 0 16px">${escapeHtml(words)}</p>`;
  const link = (url: string, style: string, words: string) =>
    `<a href="${escapeHtml(url)}" style="${style}">${escapeHtml(words)}</a>`;
  const picture = logo
    ? `<p style="margin:0 0 24px"><img src="${escapeHtml(logo)}" alt="${escapeHtml(site)}" height="40" style="height:40px;max-width:100%;border:0"></p>\n`
    : '';
  const buttonStyle = `display:inline-block;padding:12px 24px;border-radius:6px;background:${accent};color:#ffffff;font-weight:600;text-decoration:none`;
  const action = button
    ? `<p style="margin:24px 0">${link(button.url, buttonStyle, button.label)}</p>
<p style="margin:0 0 16px;font-size:14px;color:#52525b">${escapeHtml(write('mails.frame.buttonFails'))}<br>${link(button.url, `color:${accent};word-break:break-all`, button.url)}</p>`
    : '';
  const footer =
    links.length > 0
      ? `\n<p style="margin:24px 0 0;padding:16px 0 0;border-top:1px solid #e4e4e7;font-size:14px">${links.map(({ label, url }) => link(url, `color:${accent}`, label)).join(' · ')}</p>`
      : '';
  return `<!doctype html>
<html lang="${language}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(subject)}</title></head>
<body style="margin:0;padding:0;background:#f4f4f5">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:#f4f4f5"><tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:560px;background:#ffffff;border-radius:8px"><tr><td style="padding:32px;color:#18181b;${font}">
${picture}${paragraph(write('mails.frame.greeting'))}
${paragraphs.map(paragraph).join('\n')}
${action}
<p style="margin:0;font-size:14px;color:#52525b">${escapeHtml(closing)}</p>${footer}
</td></tr></table>
</td></tr></table>
</body>
</html>
`;
}
