import type { OwnMethod } from '../../shared/method-names.ts';
import type { Language } from '../../shared/texts/languages.ts';
import { providerLabel } from '../../shared/texts/provider-label.ts';
import type { TextKey, Write } from '../../shared/texts/template.ts';

/** Formats values in the language of a mail. */
export interface MailWords {
  write: Write;
  language: Language;
  /** An IANA name. */
  timeZone: string;
}

/** The locale of dates and lists. English has two date orders. */
const localeOf = (language: Language): string => (language === 'en' ? 'en-GB' : language);

/** `2026-11-22 14:05 UTC`. */
export const inUtc = (msecs: number): string => `${new Date(msecs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const dayForm = { day: 'numeric', month: 'long', year: 'numeric' } as const;
const timeForm = { ...dayForm, hour: '2-digit', minute: '2-digit', timeZoneName: 'short' } as const;

/** `22. November 2026 um 15:05 MEZ`. */
export const timeOf = (msecs: number, { language, timeZone }: MailWords): string =>
  new Date(msecs).toLocaleString(localeOf(language), { ...timeForm, timeZone });

/** The day of an ISO 8601 time: `6 December 2026`. */
export const dayOf = (time: string, { language, timeZone }: MailWords): string =>
  new Date(time).toLocaleDateString(localeOf(language), { ...dayForm, timeZone });

const textsOfOwn = {
  password: 'mails.ways.password',
  passkey: 'mails.ways.passkey',
  'email-code': 'mails.ways.email-code',
  totp: 'mails.ways.totp',
  recovery: 'mails.ways.recovery',
} as const satisfies Record<OwnMethod, TextKey>;

const isOwnMethod = (method: string): method is OwnMethod => Object.hasOwn(textsOfOwn, method);

/** `password,github` in words: `by a password and through GitHub`. */
export const waysIn = (methods: string, { write, language }: MailWords): string =>
  new Intl.ListFormat(localeOf(language), { type: 'conjunction' }).format(
    methods
      .split(',')
      .map((method) =>
        isOwnMethod(method)
          ? write(textsOfOwn[method])
          : write('mails.ways.provider', { provider: providerLabel(method, write) }),
      ),
  );
