/**
 * The languages of pages and mails as BCP 47 tags; the first is the default. A new one needs an entry here and a file
 * of texts.
 */
export const languages = ['en', 'de', 'fr', 'es'] as const;

export type Language = (typeof languages)[number];

/** As their speakers write them. */
export const languageNames: Record<Language, string> = {
  en: 'English',
  de: 'Deutsch',
  fr: 'Français',
  es: 'Español',
};

export const defaultLanguage: Language = languages[0];

export const isLanguage = (tag: unknown): tag is Language => (languages as readonly unknown[]).includes(tag);

/** The first supported language of a list of BCP 47 tags, separated by spaces. */
export const firstLanguage = (tags: string): Language | undefined =>
  tags
    .split(' ')
    .map((tag) => tag.split('-')[0]?.toLowerCase())
    .find(isLanguage);

/** In the address of a page: the languages that an application asks for (OpenID Connect Core section 3.1.2.1). */
export const LOCALES_PARAMETER = 'ui_locales';

/** The cookie with the language chosen in this browser; the pages write it. */
export const LANGUAGE_COOKIE = 'auth_language';
