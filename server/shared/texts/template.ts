import type en from './en.json';
import type { Language } from './languages.ts';

/**
 * A text of the pages or mails: `{name}` is a value, `<name>label</name>` an element around a label. Texts with `count`
 * have one form per plural category (https://unicode.org/reports/tr35/tr35-numbers.html#Language_Plural_Rules).
 */
export type Text = string | ({ other: string } & Partial<Record<Intl.LDMLPluralRule, string>>);

type KeysIn<Tree> = {
  [Name in keyof Tree & string]: Tree[Name] extends Text ? Name : `${Name}.${KeysIn<Tree[Name]>}`;
}[keyof Tree & string];

/** The key of a text in en.json: `common.form.show`. Its first name is the group of pages, or the mails. */
export type TextKey = KeysIn<typeof en>;

/** Numbers are formatted in the language of the text. */
export type TextValues = Readonly<Record<string, string | number>>;

/** Writes a text in a language. */
export type Write = (key: TextKey, values?: TextValues) => string;

/** The text of a key built from a name that the service, maybe a newer one, has sent. Undefined for an unknown key. */
export function textIfAny(write: Write, key: string, values?: TextValues): string | undefined {
  const written = write(key as TextKey, values);
  return written === key ? undefined : written;
}

/** A piece of a text: words, a value or an element. */
type Piece = { words: string } | { value: string } | { element: string; label: string };

const pattern = /\{(\w+)\}|<(\w+)>(.*?)<\/\2>/gs;

/** The plural form of a text for `count`. */
export const formOf = (text: Text, language: Language, count: unknown): string => {
  if (typeof text === 'string') return text;
  const category = typeof count === 'number' ? new Intl.PluralRules(language).select(count) : 'other';
  return text[category] ?? text.other;
};

export function* piecesOf(form: string): Generator<Piece> {
  let end = 0;
  for (const match of form.matchAll(pattern)) {
    const [whole, value, element, label = ''] = match;
    if (match.index > end) yield { words: form.slice(end, match.index) };
    yield value === undefined ? { element: element as string, label } : { value };
    end = match.index + whole.length;
  }
  if (end < form.length) yield { words: form.slice(end) };
}

/**
 * A text without elements, with its values; numbers are formatted for `locale`. A missing value leaves its placeholder.
 */
export const fill = (text: Text, language: Language, values: TextValues, locale: string = language): string =>
  formOf(text, language, values['count']).replace(/\{(\w+)\}/g, (placeholder, name: string) => {
    const value = values[name];
    if (typeof value === 'number') return new Intl.NumberFormat(locale).format(value);
    return value ?? placeholder;
  });
