import type { Language } from '../texts/languages.ts';
import { providerLabel } from '../texts/provider-label.ts';
import type { TextKey, Write } from '../texts/template.ts';

/** How values read in the language of a mail. */
export interface MailWords {
  write: Write;
  language: Language;
}

/** Whose dates and lists are those of a language: there are two Englishes. */
const localeOf = (language: Language): string => (language === 'en' ? 'en-GB' : language);

/** `2026-11-22 14:05 UTC`. */
export const inUtc = (msecs: number): string => `${new Date(msecs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const dayForm = { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' } as const;
const timeForm = { ...dayForm, hour: '2-digit', minute: '2-digit', timeZoneName: 'short' } as const;

/** `22. November 2026 um 14:05 UTC`. */
export const timeOf = (msecs: number, { language }: MailWords): string =>
  language === 'en' ? inUtc(msecs) : new Date(msecs).toLocaleString(localeOf(language), timeForm);

/** The day of a time in ISO 8601, by UTC: `6 December 2026`. */
export const dayOf = (time: string, { language }: MailWords): string =>
  new Date(time).toLocaleDateString(localeOf(language), dayForm);

const ownMethods = {
  password: 'mails.ways.password',
  passkey: 'mails.ways.passkey',
  totp: 'mails.ways.totp',
  recovery: 'mails.ways.recovery',
} as const satisfies Record<string, TextKey>;

const isOwnMethod = (method: string): method is keyof typeof ownMethods => Object.hasOwn(ownMethods, method);

/** `password,github` in words: `by a password and through GitHub`. */
export const waysIn = (methods: string, { write, language }: MailWords): string =>
  new Intl.ListFormat(localeOf(language), { type: 'conjunction' }).format(
    methods
      .split(',')
      .map((method) =>
        isOwnMethod(method)
          ? write(ownMethods[method])
          : write('mails.ways.provider', { provider: providerLabel(method, write) }),
      ),
  );
