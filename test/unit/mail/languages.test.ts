import { describe, expect, test, vi } from 'vitest';
import type { MailKind } from '../../../server/accounts/mail/kinds.ts';
import type { LeasedMail } from '../../../server/accounts/mail/outbox-rows.ts';
import { escapeHtml } from '../../../server/lib/escape-html.ts';
import { type Language, languages } from '../../../server/shared/texts/languages.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { address, type Composed, compose, composer, inLanguage, login, rows, type Stored, site } from './every-mail.ts';
import { leasedMail } from './leased-mail.ts';

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
      const sentences = ({ text }: Composed) =>
        text.split('\n\n').filter((part) => !part.includes('https://') && !/^(?:@\S+ #)?\d{6}\s*$/.test(part));
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
  expect(en).toContain('Firefox on Linux, on 22 November 2026 at 14:05 UTC, from the address 203.0.113.7.');
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

test('times are in TIME_ZONE, and name it', async () => {
  const says = async (language: Language, timeZone: string) => {
    const compose = composer({ language, browserLanguage: null }, undefined, undefined, timeZone);
    const row = leasedMail({ kind: 'new-device', detail: login('Firefox on Linux'), tokenId: 'token', email: address });
    return ((await compose(row)) as { text: string }).text;
  };
  expect(await says('en', 'Europe/Berlin')).toContain('on 22 November 2026 at 15:05 CET, from');
  expect(await says('de', 'America/New_York')).toContain('am 22. November 2026 um 09:05 GMT-5, von');
});
