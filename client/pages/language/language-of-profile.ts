import { isLanguage, type Language } from '../../server/texts/languages.ts';
import { api, refusalIn } from './api.ts';
import { arrivalQuery } from './arrival-query.ts';
import { isKept, keepLanguage } from './language-cookie.ts';
import { language } from './texts.ts';

/** The language that the user has chosen, on any device; null where none was. */
const readLanguage = async () => (await api.profile.language.query()).language;

/** Stores the choice of a user who is logged in. Rejects as a call does. */
export async function saveLanguage(chosen: Language): Promise<void> {
  try {
    await api.profile.update.mutate({ language: chosen });
  } catch (error) {
    if (refusalIn(error).code !== 'UNAUTHENTICATED') throw error;
  }
}

/**
 * What loads the page again where it is not in the language of the profile: once, and never where the browser keeps no cookie. It
 * answers whether it does so. The outcome with which the browser was sent here stays.
 */
export async function followProfile(): Promise<() => boolean> {
  // What cannot be read now is read on the next page.
  const chosen = await readLanguage().catch(() => null);
  return () => {
    if (!isLanguage(chosen) || chosen === language || isKept(chosen)) return false;
    keepLanguage(chosen);
    if (!isKept(chosen)) return false;
    if (arrivalQuery.has('error') || arrivalQuery.has('notice'))
      location.replace(`${location.pathname}?${arrivalQuery}`);
    else location.reload();
    return true;
  };
}
