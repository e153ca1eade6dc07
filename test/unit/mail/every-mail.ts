import { createMailComposer } from '../../../server/accounts/mail/composer.ts';
import { AFTER_NOT_ME, type MailKind, mailKinds } from '../../../server/accounts/mail/kinds.ts';
import { toDetail } from '../../../server/accounts/mail/new-device.ts';
import type { LeasedMail } from '../../../server/accounts/mail/outbox-rows.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Language } from '../../../server/shared/texts/languages.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { leasedMail } from './leased-mail.ts';

/** Every mail that there is, composed without a database. */

export const site = 'Ada & <Co> {site}';
export const address = 'ada@example.test';

export const login = (device: string) =>
  toDetail({ at: Date.UTC(2026, 10, 22, 14, 5), method: 'password', address: '203.0.113.7', device });

/** The possible details of each kind; unlisted kinds have none. */
const details: Partial<Record<MailKind, string[]>> = {
  'reset-password': ['', AFTER_NOT_ME],
  'email-code': ['hash 0', 'hash nobody'],
  'password-changed': ['user', 'reset'],
  'email-changed': ['new@example.test'],
  'email-change-undone': ['new@example.test'],
  'new-device': [login('Firefox on Linux'), login('Unknown device')],
  'login-methods-removed': ['password,passkey,email-code,totp,recovery,idp,github'],
  'identity-linked': ['github'],
  'identity-unlinked': ['idp'],
  'account-deleted': ['2026-12-06T00:00:00.000Z'],
  'account-closed': ['2026-12-06T00:00:00.000Z'],
  'role-changed': ['admin', 'user'],
  'recovery-code-used': ['7'],
  'file-quarantined': ['2026-12-23T09:30:00.000Z'],
  'webhook-gone': ['hooks.example.test'],
  'webhook-failing': ['hooks.example.test'],
};

const kinds = Object.keys(mailKinds) as MailKind[];
export const rows: [kind: MailKind, detail: string, tokenId: string][] = [
  ...kinds.flatMap((kind) =>
    (details[kind] ?? ['']).map((detail) => [kind, detail, 'token'] as [MailKind, string, string]),
  ),
  ['confirm-email', '', 'taken'],
];

export interface Stored {
  language: string | null;
  browserLanguage: string | null;
}

/** Composes mails to a user with these languages. */
export function composer(
  user: Stored | undefined,
  texts = readTexts(undefined),
  languagesOf: (user: object) => Promise<Stored | undefined> = async () => user,
  timeZone = 'UTC',
) {
  const derive = async (_tables: unknown, _purpose: string, id: string) => (id === 'taken' ? 'taken' : { token: 'T' });
  return createMailComposer({
    appUrl: 'https://accounts.test',
    site,
    brand: parseConfig({
      APP_NAME: site,
      SUPPORT_URL: 'mailto:help@example.test',
      TERMS_URL: '/terms',
      PRIVACY_URL: '/privacy',
    }).brand,
    timeZone,
    texts,
    database: { query: (work: (tables: unknown) => unknown) => work({}) },
    users: { find: async () => undefined, languagesOf },
    methodsOf: async () => ['github', 'totp'],
    tokens: { deriveAgain: derive, derive: () => 'T' },
    emailChanges: { deriveAgain: derive },
    invitations: { deriveAgain: async () => ({ token: 'T' }) },
    emailCodes: { derive: () => ({ code: '001843' }) },
  } as unknown as Parameters<typeof createMailComposer>[0]);
}

export interface Composed {
  subject: string;
  text: string;
  html: string;
}

export const compose = async (changes: Partial<LeasedMail>, user?: Stored, texts?: Parameters<typeof composer>[1]) =>
  (await composer(user, texts)(leasedMail({ email: address, ...changes }))) as Composed;

export const inLanguage = ([kind, detail, tokenId]: (typeof rows)[number], language: Language) =>
  compose({ kind, detail, tokenId }, { language, browserLanguage: null });
