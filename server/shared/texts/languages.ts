/** The languages of the pages and mails, by their tags (BCP 47); the first is the default. A new one is an entry here and a file beside this one. */
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

/** The cookie with the language that was chosen in this browser; the pages write it. */
export const LANGUAGE_COOKIE = 'auth_language';
