import { brandLinks } from '../brand-links.ts';
import type { Brand } from '../config/brand.ts';
import { escapeHtml } from '../escape-html.ts';
import type { Database } from '../parts/database/contract.ts';
import type { Mail } from '../parts/mail/contract.ts';
import type { EmailChangeRows } from './email-change-rows.ts';
import type { InvitationRows } from './invitation-rows.ts';
import { isChangePurpose, isInvitation, isTokenPurpose, type MailContent, mailKinds } from './mail-kinds.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';
import type { LeasedMail } from './outbox-rows.ts';
import type { Users } from './users.ts';

type Message = Omit<Mail, 'id'>;

const GREETING = 'Hello,';

interface Parts {
  appUrl: string;
  /** What the service is called. */
  site: string;
  brand: Brand;
  database: Database;
  users: Users;
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

  return async (row) => {
    const email = row.email || (await addressOf(row.userId));
    if (!email) return undefined;
    const { content, token, changeToken, invitationToken } = mailKinds[row.kind];
    const setting = { site, appUrl, link: '', detail: row.detail ?? '' };
    const linked = token ?? changeToken ?? invitationToken;
    if (!linked) return render(email, content(setting));
    const found = row.tokenId ? await tokenOf(row, row.tokenId) : undefined;
    if (!found || found === 'foreign') return found;
    const link = found === 'taken' ? '' : appUrl + linked.page(found.token, email);
    return render(email, content({ ...setting, link }));
  };
};

const labels = { support: 'Support', terms: 'Terms of service', privacy: 'Privacy policy' };

/** What is the same in all mails. Every address is absolute. */
interface Frame {
  site: string;
  logo: string | undefined;
  /** Of buttons, with white labels, and of links. */
  accent: string;
  links: { label: string; url: string }[];
}

const DEFAULT_ACCENT = '#1d4ed8';

function frameOf({ logo, colors, ...pages }: Brand, { site, appUrl }: Pick<Frame, 'site'> & { appUrl: string }): Frame {
  const absolute = (url: string) => new URL(url, appUrl).href;
  return {
    site,
    logo: logo && absolute(logo),
    accent: colors?.light.accent ?? DEFAULT_ACCENT,
    links: brandLinks(pages).map(({ name, url }) => ({ label: labels[name], url: absolute(url) })),
  };
}

/**
 * No mail carries the name of a user: the user who registered the address chose it, who need not be its owner, confirmed or
 * not.
 */
const renderer =
  (frame: Frame) =>
  (email: string, content: MailContent): Message => {
    const { subject, paragraphs, button, closing } = content;
    const action = button ? [`${button.label}:\n${button.url}`] : [];
    const footer = frame.links
      .map(({ label, url }) => `${label}: ${url.replace(/^mailto:([^?]*).*$/, '$1')}`)
      .join('\n');
    const parts = [GREETING, ...paragraphs, ...action, closing, ...(footer ? [footer] : [])];
    return { to: { address: email }, subject, text: `${parts.join('\n\n')}\n`, html: renderHtml(frame, content) };
  };

const font = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:16px;line-height:1.5";

/** Tables and inline styles, because all mail programs support them. Everything variable is escaped. */
function renderHtml(
  { site, logo, accent, links }: Frame,
  { subject, paragraphs, button, closing }: MailContent,
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
<p style="margin:0 0 16px;font-size:14px;color:#52525b">If the button does not work, open this address:<br>${link(button.url, `color:${accent};word-break:break-all`, button.url)}</p>`
    : '';
  const footer =
    links.length > 0
      ? `\n<p style="margin:24px 0 0;padding:16px 0 0;border-top:1px solid #e4e4e7;font-size:14px">${links.map(({ label, url }) => link(url, `color:${accent}`, label)).join(' · ')}</p>`
      : '';
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(subject)}</title></head>
<body style="margin:0;padding:0;background:#f4f4f5">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:#f4f4f5"><tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:560px;background:#ffffff;border-radius:8px"><tr><td style="padding:32px;color:#18181b;${font}">
${picture}${paragraph(GREETING)}
${paragraphs.map(paragraph).join('\n')}
${action}
<p style="margin:0;font-size:14px;color:#52525b">${escapeHtml(closing)}</p>${footer}
</td></tr></table>
</td></tr></table>
</body>
</html>
`;
}
