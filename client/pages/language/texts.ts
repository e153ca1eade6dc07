import type { ComponentChildren } from 'preact';
import { defaultLanguage, type Language } from '../../../server/shared/texts/languages.ts';
import {
  fill,
  formOf,
  piecesOf,
  type Text,
  type TextKey,
  type TextValues,
} from '../../../server/shared/texts/template.ts';

/** The texts in the shell, beside the settings. Their shape is that of `server/http/web/pages.ts`. */
interface PageTexts {
  language: Language;
  /** The texts of the parts that this page needs. */
  texts: Record<string, Text>;
}

const shell = document.getElementById('texts')?.textContent;
const { language: languageOfPage, texts }: PageTexts = shell
  ? JSON.parse(shell)
  : { language: defaultLanguage, texts: {} };

export const language = languageOfPage;

/** The language of the page with the reader's region, such as de-AT, if the browser has one. */
export const locale: string = navigator.languages.find((tag) => tag.split('-')[0] === language) ?? language;

/** A text in the language of the page, with its values. `count` selects the plural form. */
export const text = (key: TextKey, values: TextValues = {}): string =>
  fill(texts[key] ?? key, language, values, locale);

/** The value of a placeholder, or a function that renders an element around its label. */
type Insert = ComponentChildren | ((label: string) => ComponentChildren);

/** A text with elements: `markup('entry.logIn.newHere', { link: (label) => <a href="/register">{label}</a> })`. */
export const markup = (key: TextKey, inserts: Readonly<Record<string, Insert>>): ComponentChildren[] =>
  [...piecesOf(formOf(texts[key] ?? key, language, inserts['count']))].map((piece) => {
    if ('words' in piece) return piece.words;
    const insert = inserts['value' in piece ? piece.value : piece.element];
    return typeof insert === 'function' ? insert('label' in piece ? piece.label : '') : insert;
  });
