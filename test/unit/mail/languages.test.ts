import { describe, expect, test, vi } from 'vitest';
import { createMailComposer } from '../../../server/accounts/mail/composer.ts';
import { AFTER_NOT_ME, type MailKind, mailKinds } from '../../../server/accounts/mail/kinds.ts';
import { toDetail } from '../../../server/accounts/mail/new-device.ts';
import type { LeasedMail } from '../../../server/accounts/mail/outbox-rows.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { escapeHtml } from '../../../server/lib/escape-html.ts';
import { type Language, languages } from '../../../server/shared/texts/languages.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { leasedMail } from './leased-mail.ts';

const site = 'Ada & <Co> {site}';
const address = 'ada@example.test';

const login = (device: string) =>
  toDetail({ at: Date.UTC(2026, 10, 22, 14, 5), method: 'password', address: '203.0.113.7', device });

/** The possible details of each kind; unlisted kinds have none. */
const details: Partial<Record<MailKind, string[]>> = {
  'reset-password': ['', AFTER_NOT_ME],
  'password-changed': ['user', 'reset'],
  'email-changed': ['new@example.test'],
  'email-change-undone': ['new@example.test'],
  'new-device': [login('Firefox on Linux'), login('Unknown device')],
  'login-methods-removed': ['password,passkey,totp,recovery,idp,github'],
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
const rows: [kind: MailKind, detail: string, tokenId: string][] = [
  ...kinds.flatMap((kind) =>
    (details[kind] ?? ['']).map((detail) => [kind, detail, 'token'] as [MailKind, string, string]),
  ),
  ['confirm-email', '', 'taken'],
];

interface Stored {
  language: string | null;
  browserLanguage: string | null;
}

/** Composes mails to a user with these languages. */
function composer(user: Stored | undefined, texts = readTexts(undefined), languagesOf = vi.fn(async () => user)) {
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
    texts,
    database: { query: (work: (tables: unknown) => unknown) => work({}) },
    users: { find: async () => undefined, languagesOf },
    methodsOf: async () => ['github', 'totp'],
    tokens: { deriveAgain: derive, derive: () => 'T' },
    emailChanges: { deriveAgain: derive },
    invitations: { deriveAgain: async () => ({ token: 'T' }) },
  } as unknown as Parameters<typeof createMailComposer>[0]);
}

interface Composed {
  subject: string;
  text: string;
  html: string;
}

const compose = async (changes: Partial<LeasedMail>, user?: Stored, texts?: Parameters<typeof composer>[1]) =>
  (await composer(user, texts)(leasedMail({ email: address, ...changes }))) as Composed;

const inLanguage = ([kind, detail, tokenId]: (typeof rows)[number], language: Language) =>
  compose({ kind, detail, tokenId }, { language, browserLanguage: null });

describe.each(languages)('in %s', (language) => {
  test.each(rows)('%s (%s, %s) has all texts and values', async (...row) => {
    const { subject, text, html } = await inLanguage(row, language);
    expect(html).toContain(`<html lang="${language}">`);
    expect(html).toContain(`<title>${escapeHtml(subject)}</title>`);
    for (const words of [subject, text]) {
      expect(words.replaceAll(site, '')).not.toMatch(/[{}]|mails\.[a-z]|common\./);
      expect(words).toContain(site);
    }
    expect(html).not.toContain('<Co>');
    const own = row[1].split(',')[0] ?? '';
    if (own.includes('@')) expect(text).toContain(own);
    expect(text).toContain('https://accounts.test/terms');
  });
});

test.each(languages.filter((language) => language !== 'en'))(
  'no mail in %s contains an English sentence',
  async (language) => {
    for (const row of rows) {
      const sentences = ({ text }: Composed) => text.split('\n\n').filter((part) => !part.includes('https://'));
      const english = sentences(await inLanguage(row, 'en'));
      const common = sentences(await inLanguage(row, language)).filter((part) => english.includes(part));
      expect(common).toEqual([]);
    }
  },
);

test('every text of the mails is used', async () => {
  const texts = readTexts(undefined);
  const read = new Set<string>();
  const get = (own: typeof texts.en, key: string) => {
    read.add(key);
    return own[key];
  };
  const en = new Proxy(texts.en, { get: get as ProxyHandler<typeof texts.en>['get'] & {} });
  for (const [kind, detail, tokenId] of rows) {
    await compose({ kind, detail, tokenId }, { language: 'en', browserLanguage: null }, { ...texts, en });
  }
  const ofMails = Object.keys(texts.en).filter((key) => key.startsWith('mails.'));
  expect(ofMails.filter((key) => !read.has(key))).toEqual([]);
});

test('times, days, devices and login methods are in the language', async () => {
  const says = async (kind: MailKind, detail: string) =>
    Promise.all(languages.map(async (language) => (await inLanguage([kind, detail, 'token'], language)).text));
  const [en, de, fr, es] = await says('new-device', login('Firefox on Linux'));
  expect(en).toContain('Firefox on Linux, on 2026-11-22 14:05 UTC, from the address 203.0.113.7.');
  expect(de).toContain('Firefox unter Linux, am 22. November 2026 um 14:05 UTC, von der Adresse 203.0.113.7.');
  expect(fr).toContain('le 22 novembre 2026 à 14:05 UTC');
  expect(es).toContain('el 22 de noviembre de 2026 a las 14:05 UTC');
  expect(await says('account-closed', '2026-12-06T00:00:00.000Z')).toEqual([
    expect.stringContaining('log in by 6 December 2026 '),
    expect.stringContaining('bis zum 6. Dezember 2026 an'),
    expect.stringContaining('au plus tard le 6 décembre 2026 '),
    expect.stringContaining('a más tardar el 6 de diciembre de 2026 '),
  ]);
  expect(await says('login-methods-removed', 'password,passkey,idp')).toEqual([
    expect.stringContaining('with a password, with a passkey and through single sign-on. We have'),
    expect.stringContaining('mit einem Passwort, mit einem Passkey und über Single Sign-on öffnen'),
    expect.stringContaining('avec un mot de passe, avec une clé d’accès et via'),
    expect.stringContaining('con una contraseña, con una clave de acceso y a través de'),
  ]);
});

describe('a mail is in the language', () => {
  const languageOf = async (changes: Partial<LeasedMail>, user?: Stored) =>
    /<html lang="(\w+)">/.exec((await compose(changes, user)).html)?.[1];

  test('of the user, else of the request, else of the last browser, else in English', async () => {
    expect(await languageOf({ language: 'fr' }, { language: 'de', browserLanguage: 'es' })).toBe('de');
    expect(await languageOf({ language: 'fr' }, { language: null, browserLanguage: 'es' })).toBe('fr');
    expect(await languageOf({ language: null }, { language: null, browserLanguage: 'es' })).toBe('es');
    expect(await languageOf({ language: null }, { language: null, browserLanguage: null })).toBe('en');
  });

  test('of the request if there is no user', async () => {
    expect(await languageOf({ kind: 'invitation', userId: null, language: 'fr' })).toBe('fr');
    expect(await languageOf({ kind: 'invitation', userId: null, language: null })).toBe('en');
  });

  test('of the owner of a taken email', async () => {
    const languagesOf = vi.fn(async () => ({ language: null, browserLanguage: 'es' }));
    const row = leasedMail({
      kind: 'confirm-email',
      email: address,
      userId: 'user_2',
      tokenId: 'taken',
      language: 'fr',
    });
    const { subject } = (await composer(undefined, undefined, languagesOf)(row)) as Composed;
    expect(subject).toMatch(/^Se ha indicado su correo electrónico para otra cuenta de /);
    expect(languagesOf).toHaveBeenCalledExactlyOnceWith({ email: address });
  });

  test('that is known, if a later release has stored another', async () => {
    expect(await languageOf({ language: 'it' }, { language: 'pt', browserLanguage: 'es' })).toBe('es');
  });
});

test('custom texts apply to mails too', async () => {
  const texts = readTexts(undefined);
  const own = { ...texts, de: { ...texts.de, 'mails.frame.greeting': 'Moin,' } };
  const { text, html } = await compose({ language: 'de' }, undefined, own);
  expect(text).toMatch(/^Moin,\n/);
  expect(html).toContain('>Moin,</p>');
});
