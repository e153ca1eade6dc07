import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../config/index.ts';
import { isLanguage, type Language, languages } from '../shared/texts/languages.ts';
import { fill, piecesOf, type Text, type Write } from '../shared/texts/template.ts';

/** The texts of one language by their keys, with the operator's texts instead of the built-in ones. */
type TextsOf = Readonly<Record<string, Text>>;

export type Texts = Readonly<Record<Language, TextsOf>>;

const builtInDir = join(import.meta.dirname, '../shared/texts');

/**
 * The texts of all languages. `ownDir` (TEXTS_DIR) may have a file for each, `de.json`, with any of the texts of ours.
 * Throws ConfigError with every text in it that is unknown, or has other placeholders than the built-in one.
 */
export function readTexts(ownDir: string | undefined): Texts {
  const files = ownDir === undefined ? [] : filesIn(ownDir);
  const problems = files.filter((name) => !isLanguageFile(name)).map(unknownFile);
  const entries = languages.map((language) => {
    const ours = flattened(parsed(join(builtInDir, `${language}.json`)));
    const name = `${language}.json`;
    if (ownDir === undefined || !files.includes(name)) return [language, ours] as const;
    const tree = parsed(join(ownDir, name));
    if (!isObject(tree)) problems.push(`${name} must be an object`);
    const own = isObject(tree) ? flattened(tree) : {};
    problems.push(
      ...Object.entries(own).flatMap(([key, text]) => problemWith(key, text, ours).map((p) => `${name}: ${p}`)),
    );
    return [language, { ...ours, ...own }] as const;
  });
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => `TEXTS_DIR ${problem}`));
  return Object.fromEntries(entries) as Record<Language, TextsOf>;
}

/**
 * The texts of a configuration: a provider without a name of its own is called single sign-on, the embedded one the test
 * provider.
 */
export function textsOf({ textsDir, embeddedProvider }: Pick<Config, 'textsDir' | 'embeddedProvider'>): Texts {
  const texts = readTexts(textsDir);
  if (!embeddedProvider) return texts;
  const renamed = languages.map((language): [Language, TextsOf] => {
    const ours = texts[language];
    return [language, { ...ours, 'common.singleSignOn': ours['common.testProvider'] ?? '' }];
  });
  return Object.fromEntries(renamed) as Record<Language, TextsOf>;
}

export const writer =
  (texts: Texts, language: Language): Write =>
  (key, values = {}) =>
    fill(texts[language][key] ?? key, language, values);

/** The texts of some parts: `common`, `entry`. */
export const textsOfParts = (texts: TextsOf, parts: readonly string[]): TextsOf =>
  Object.fromEntries(Object.entries(texts).filter(([key]) => parts.includes(partOf(key))));

/** The part of the pages, or of the mails, that a text is for. */
export const partOf = (key: string): string => key.slice(0, key.indexOf('.'));

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) throw new ConfigError([`TEXTS_DIR names ${folder}, which is not there`]);
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch (error) {
    throw new ConfigError([`TEXTS_DIR ${folder} cannot be read: ${(error as Error).message}`]);
  }
}

const isLanguageFile = (name: string): boolean => isLanguage(name.replace(/\.json$/, ''));

const unknownFile = (name: string): string =>
  `has ${name}: the languages are ${languages.map((language) => `${language}.json`).join(', ')}`;

function parsed(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new ConfigError([`TEXTS_DIR ${file} cannot be read: ${(error as Error).message}`]);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether it is a text with plural forms. */
const hasForms = (value: Record<string, unknown>): boolean => typeof value['other'] === 'string';

/** `{ common: { form: { show } } }` as `{ 'common.form.show' }`. */
function flattened(tree: unknown): Record<string, Text> {
  const textsIn = (value: unknown, key: string): [string, Text][] =>
    isObject(value) && !hasForms(value)
      ? Object.entries(value).flatMap(([name, below]) => textsIn(below, key ? `${key}.${name}` : name))
      : [[key, value as Text]];
  return Object.fromEntries(textsIn(tree, ''));
}

/** Why an operator's text cannot replace the built-in one. */
function problemWith(key: string, own: unknown, ours: TextsOf): string[] {
  const text = Object.hasOwn(ours, key) ? ours[key] : undefined;
  if (text === undefined) return [`${key} is no text of ours`];
  const forms = formsOf(own);
  if (forms.length === 0 || forms.some((form) => typeof form !== 'string' || form.trim() === '')) {
    return [`${key} must be a text`];
  }
  if (key.endsWith('.subject') && forms.some((form) => /\p{Cc}/u.test(form))) return [`${key} must be one line`];
  const known = new Set(formsOf(text).flatMap(namesIn));
  const unknown = forms.flatMap(namesIn).filter((name) => !known.has(name));
  return unknown.map((name) => `${key} has ${name}, which ours has not`);
}

/** The forms of a text: one, or one for each plural category. */
export const formsOf = (text: unknown): string[] => (isObject(text) ? Object.values(text) : [text]) as string[];

/** The values and elements of a text: `{email}`, `<link>`. */
export const namesIn = (form: string): string[] =>
  [...piecesOf(form)].flatMap((piece) =>
    'value' in piece
      ? [`{${piece.value}}`]
      : 'element' in piece
        ? [`<${piece.element}>`, ...namesIn(piece.label).map((name) => `${name} in <${piece.element}>`)]
        : [],
  );
