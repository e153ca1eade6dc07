import { isLanguage, type Language } from '../../../server/shared/texts/languages.ts';
import { api, refusalIn } from '../api.ts';
import { arrivalQuery } from '../session/arrival-query.ts';
import { isKept, keepLanguage } from './language-cookie.ts';
import { language } from './texts.ts';

/** The language that the user has chosen, on any device; null if none. */
const readLanguage = async () => (await api.profile.language.query()).language;

/** Stores the choice of a logged-in user. Rejects like a call. */
export async function saveLanguage(chosen: Language): Promise<void> {
  try {
    await api.profile.update.mutate({ language: chosen });
  } catch (error) {
    if (refusalIn(error).code !== 'UNAUTHENTICATED') throw error;
  }
}

/**
 * Reloads the page if its language is not that of the profile: once, and never if the browser keeps no cookie. Returns
 * whether it reloads. The result of another page in the query stays.
 */
export async function followProfile(): Promise<() => boolean> {
  // If it cannot be read now, the next page reads it.
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
