import type { Context } from 'koa';
import {
  defaultLanguage,
  firstLanguage,
  isLanguage,
  LANGUAGE_COOKIE,
  type Language,
  LOCALES_PARAMETER,
  languages,
} from '../../shared/texts/languages.ts';
import { readCookie } from './cookie.ts';

/** The match of `*`, which programs send: it names no language. */
const ANY = 'und';

/** The language chosen in this browser, else the first supported language of Accept-Language, else undefined. */
export function askedLanguage(ctx: Context): Language | undefined {
  const chosen = readCookie(ctx.get('Cookie'), LANGUAGE_COOKIE);
  if (isLanguage(chosen)) return chosen;
  const accepted = ctx.acceptsLanguages(ANY, ...languages);
  return isLanguage(accepted) ? accepted : undefined;
}

/** That of a page: an application may ask for another one in its address. */
export const languageOfPage = (ctx: Context): Language =>
  firstLanguage(String(ctx.query[LOCALES_PARAMETER] ?? '')) ?? askedLanguage(ctx) ?? defaultLanguage;
