import { LANGUAGE_COOKIE, type Language } from '../../../server/shared/texts/languages.ts';

const YEAR_SECONDS = 365 * 24 * 60 * 60;

const pairOf = (language: Language): string => `${LANGUAGE_COOKIE}=${language}`;

/** Whether this browser keeps a language: cookies may be disabled. */
export const isKept = (language: Language): boolean => document.cookie.split('; ').includes(pairOf(language));

/** Pages use this language from the next load on. */
export function keepLanguage(language: Language): void {
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: the cookie store is not in every browser, and only at https addresses.
  document.cookie = `${pairOf(language)}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax${secure}`;
}
