import type { Context } from 'koa';
import { defaultLanguage, isLanguage, LANGUAGE_COOKIE, type Language, languages } from '../../texts/languages.ts';
import { readCookie } from './cookie.ts';

/** Browsers send less than 200 characters. Each part of a longer header takes time. */
const LONGEST_HEADER = 500;

/** The first match of a header that takes any language, as those of programs do: it names none. */
const ANY = 'und';

/** The language that was chosen in this browser, else the first of ours that it asks for; undefined where it asks for none of them. */
export function askedLanguage(ctx: Context): Language | undefined {
  const chosen = readCookie(ctx.get('Cookie'), LANGUAGE_COOKIE);
  if (isLanguage(chosen)) return chosen;
  if (ctx.get('Accept-Language').length > LONGEST_HEADER) return undefined;
  const asked = ctx.acceptsLanguages(ANY, ...languages);
  return isLanguage(asked) ? asked : undefined;
}

/** The language of a page for this browser. */
export const languageOf = (ctx: Context): Language => askedLanguage(ctx) ?? defaultLanguage;
