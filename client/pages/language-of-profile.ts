import { isLanguage, type Language } from '../../server/texts/languages.ts';
import { api } from './api.ts';
import { isKept, keepLanguage } from './language-cookie.ts';
import { language } from './texts.ts';

/** The language that the user has chosen, on any device; null where none was. */
const readLanguage = async () => (await api.profile.language.query()).language;

/** Stores the user's choice. Rejects as a call does. */
export const saveLanguage = (chosen: Language) => api.profile.update.mutate({ language: chosen });

/** Loads the page again where it is not in the language of the profile: once, and never where the browser keeps no cookie. */
export async function followProfile(): Promise<void> {
  // What cannot be read now is read on the next page.
  const chosen = await readLanguage().catch(() => null);
  if (!isLanguage(chosen) || chosen === language || isKept(chosen)) return;
  keepLanguage(chosen);
  if (isKept(chosen)) location.reload();
}
