import type { Brand } from '../../config/brand.ts';
import { pageColors } from '../../config/brand-color.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { Mail } from '../../parts/mail/contract.ts';
import { brandLinks, homeName } from '../../shared/brand-links.ts';
import type { LoginMethod } from '../../shared/method-names.ts';
import { defaultLanguage, isLanguage, type Language } from '../../shared/texts/languages.ts';
import type { Write } from '../../shared/texts/template.ts';
import { type Texts, writer } from '../../texts/index.ts';
import type { Users } from '../users/index.ts';
import { hasCode } from './code-detail.ts';
import { type MailColors, renderHtml } from './html.ts';
import { buttonPages, type Link, type Message, mailKinds } from './kinds.ts';
import type { LeasedMail } from './outbox-rows.ts';
import { codeOf } from './tokens/derivation.ts';
import type { EmailChangeRows } from './tokens/email-changes.ts';
import type { EmailCodes } from './tokens/email-codes.ts';
import type { InvitationRows } from './tokens/invitations.ts';
import type { OneTimeTokens } from './tokens/one-time.ts';
import { type MailWords, waysIn } from './words.ts';

type ComposedMail = Omit<Mail, 'id'>;

/** The login methods added to a user's password. `email` is the user's address. */
export type MethodsOf = (user: { userId: string; email: string }) => Promise<LoginMethod[]>;

interface Parts {
  appUrl: string;
  /** The name of the service. */
  site: string;
  brand: Brand;
  timeZone: string;
  texts: Texts;
  database: Database;
  users: Pick<Users, 'find' | 'languagesOf'>;
  methodsOf: MethodsOf;
  tokens: OneTimeTokens;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
  emailCodes: EmailCodes;
}

/**
 * The mail of an outbox row. Undefined if the token was used, replaced or deleted; `otherKey` if only a process with
 * another APP_SECRET can derive it.
 */
export type MailComposer = (row: LeasedMail) => Promise<ComposedMail | 'otherKey' | undefined>;

/** Links start with the configured public address, never with the Host of a request. */
export const createMailComposer = ({
  appUrl,
  site,
  brand,
  timeZone,
  texts,
  database,
  users,
  methodsOf,
  tokens,
  emailChanges,
  invitations,
  emailCodes,
}: Parts): MailComposer => {
  const render = renderer(frameOf(brand, { site, appUrl }));

  // Rows written by the previous release, which may still run, contain only the user.
  const addressOf = async (userId: LeasedMail['userId']) => (userId ? (await users.find(userId))?.email : undefined);

  const tokenOf = async (link: Link, id: string, { isNew }: LeasedMail) => {
    if (isNew && link.source === 'one-time') return { token: tokens.derive(link.purpose, id) };
    return database.query((tables) => {
      switch (link.source) {
        case 'one-time':
          return tokens.deriveAgain(tables, link.purpose, id);
        case 'email-change':
          return emailChanges.deriveAgain(tables, link.purpose, id);
        case 'invitation':
          return invitations.deriveAgain(tables, id);
      }
    });
  };

  /** The six digits in a mail. Undefined in a mail without a code. */
  const codeIn = ({ id, kind, detail }: LeasedMail, token: string | undefined) => {
    if (kind !== 'email-code') return mailKinds[kind].code && token !== undefined ? { code: codeOf(token) } : undefined;
    return detail && hasCode(detail) ? emailCodes.derive(id, detail) : undefined;
  };

  /**
   * The user's choice, else the language of the request, else the browser language of the last login. An `owner` is
   * notified of another user's request.
   */
  const languageOf = async ({ userId, language, isNew }: LeasedMail, owner?: { email: string }): Promise<Language> => {
    const reader = owner ?? (userId && { id: userId });
    // A user inserted just now has not chosen a language.
    const user = reader && !isNew ? await users.languagesOf(reader) : undefined;
    // A row may come from the next release, which may support more languages.
    const others = owner ? [user?.browserLanguage, language] : [language, user?.browserLanguage];
    return [user?.language, ...others].find(isLanguage) ?? defaultLanguage;
  };

  return async (row) => {
    const email = row.email || (await addressOf(row.userId));
    if (!email) return undefined;
    const { link: source } = mailKinds[row.kind];
    const found = source && (row.tokenId ? await tokenOf(source, row.tokenId, row) : undefined);
    if (source && (!found || found === 'otherKey')) return found;
    const link = source && typeof found === 'object' ? appUrl + source.page(found.token, email) : '';
    const coded = codeIn(row, typeof found === 'object' ? found.token : undefined);
    if (coded === 'otherKey') return coded;
    const language = await languageOf(row, found === 'taken' ? { email } : undefined);
    const words = { language, timeZone, write: writer(texts, language) };
    const message = messageOf(row, link);
    const kept = message.tellsMethods && row.userId ? await methodsOf({ userId: row.userId, email }) : [];
    return render(email, contentOf(row, { site, appUrl, link, message, kept, code: coded?.code }, words), words);
  };
};

interface Setting {
  /** The name of the service: APP_NAME, or the host of the public URL. */
  site: string;
  appUrl: string;
  /** The page of the mail, with its token. Empty without a token, and if the owner of the address is only notified. */
  link: string;
  message: Message;
  /** The login methods other than the password, if the mail lists them. */
  kept: LoginMethod[];
  /** The six digits. Undefined in a mail without a code. */
  code: string | undefined;
}

interface MailContent {
  subject: string;
  paragraphs: string[];
  button: { label: string; url: string } | undefined;
  /** Six digits, the words before them, and the line from which browsers fill them in. */
  code: { intro: string; digits: string; autofill: string } | undefined;
  closing: string;
}

/** The detail of a row has the type that its kind declares. */
const detailOf = ({ detail }: LeasedMail) => (detail ?? '') as never;

function messageOf(row: LeasedMail, link: string): Message {
  const { message } = mailKinds[row.kind];
  return typeof message === 'object' ? message : message({ detail: detailOf(row), hasLink: link !== '' });
}

function contentOf(
  row: LeasedMail,
  { site, appUrl, link, message: { texts, button }, kept, code }: Setting,
  words: MailWords,
): MailContent {
  const { write } = words;
  const values = { site, ...mailKinds[row.kind].values?.(detailOf(row), words) };
  const left = kept.length > 0 ? [write('mails.frame.methodsLeft', { ways: waysIn(kept.join(','), words) })] : [];
  const page = button && buttonPages[button];
  return {
    subject: write(`mails.${texts}.subject`, values),
    paragraphs: [...write(`mails.${texts}.body`, values).split('\n\n'), ...left],
    button: button && { label: write(`mails.buttons.${button}`), url: page ? appUrl + page : link },
    code: code === undefined ? undefined : codeContent(row.kind, code, { appUrl, write }),
    closing: write(`mails.${texts}.closing`, values),
  };
}

/** The autofill line is that of the origin-bound one-time codes of the WICG: a host without a port, then the code. */
const codeContent = (kind: LeasedMail['kind'], digits: string, { appUrl, write }: { appUrl: string; write: Write }) => {
  const { code: intro } = mailKinds[kind];
  return { intro: intro ? write(intro) : '', digits, autofill: `@${new URL(appUrl).hostname} #${digits}` };
};

/** The parts common to all mails. Every URL is absolute. */
interface Frame {
  site: string;
  logo: string | undefined;
  /** The product, and its name. */
  home: { url: string; name: string } | undefined;
  colors: MailColors;
  links: ReturnType<typeof brandLinks>;
}

function frameOf(
  { name, logo, home, colors, ...pages }: Brand,
  { site, appUrl }: Pick<Frame, 'site'> & { appUrl: string },
): Frame {
  const absolute = (url: string) => new URL(url, appUrl).href;
  return {
    site,
    logo: logo && absolute(logo),
    home: home === undefined ? undefined : { url: home, name: homeName(name, home) },
    colors: { light: { ...pageColors.light, ...colors?.light }, dark: { ...pageColors.dark, ...colors?.dark } },
    links: brandLinks(pages).map(({ name, url }) => ({ name, url: absolute(url) })),
  };
}

/** No mail contains the user's name: another person may have registered the address and chosen the name. */
const renderer =
  (frame: Frame) =>
  (email: string, content: MailContent, words: MailWords): ComposedMail => {
    const { write } = words;
    const { subject, paragraphs, button, code, closing } = content;
    const greeting = write('mails.frame.greeting');
    const back = frame.home ? [{ label: write('common.backTo', frame.home), url: frame.home.url }] : [];
    const pages = frame.links.map(({ name, url }) => ({ label: write(`common.brandLinks.${name}`), url }));
    const links = [...back, ...pages];
    const action = button ? [write('mails.frame.action', button)] : [];
    const footer = links
      .map(({ label, url }) => write('mails.frame.link', { label, url: url.replace(/^mailto:([^?]*).*$/, '$1') }))
      .join('\n');
    const typed = code ? [code.intro, code.digits] : [];
    const last = code ? [code.autofill] : [];
    const parts = [greeting, ...paragraphs, ...action, ...typed, closing, ...(footer ? [footer] : []), ...last];
    return {
      to: { address: email },
      subject,
      text: `${parts.join('\n\n')}\n`,
      html: renderHtml({
        ...frame,
        links,
        content: { ...content, greeting, buttonFails: write('mails.frame.buttonFails') },
        language: words.language,
      }),
    };
  };
