import type { Context } from 'koa';
import { defaultLanguage, isLanguage, LANGUAGE_COOKIE, type Language, languages } from '../../texts/languages.ts';
import { readCookie } from './cookie.ts';

/** The language that was chosen in this browser, else the first of ours that the browser asks for. */
export function languageOf(ctx: Context): Language {
  const chosen = readCookie(ctx.get('Cookie'), LANGUAGE_COOKIE);
  if (isLanguage(chosen)) return chosen;
  const asked = ctx.acceptsLanguages(...languages);
  return isLanguage(asked) ? asked : defaultLanguage;
}
