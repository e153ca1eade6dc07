/** Longer than a name of 100 characters, also after most compatibility decompositions; the rest of a text is not searched. */
export const SEARCH_KEY_LENGTH = 300;

/**
 * Diacritics, joiners and variation selectors; characters that are not displayed; control characters; noncharacters.
 */
const unsearched = /[\p{Script=Inherited}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\p{Cc}]/gu;

/**
 * The key under which a text is found: two texts that look alike or differ in case, accents, width or white space have
 * the same key (Unicode's NFKD, then case folding). Keys are compared as bytes, which is the same in all databases. The
 * key is '' if the text has no searchable character.
 */
export function searchKey(text: string): string {
  const plain = text.normalize('NFKD').replace(/\s+/g, ' ').replace(unsearched, '');
  // By way of upper case, ß becomes ss and ı becomes i; JavaScript has no case folding of its own.
  const folded = plain.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ').trim();
  return [...folded].slice(0, SEARCH_KEY_LENGTH).join('').trimEnd();
}

/** The end of the range of all keys that start with `prefix`: U+10FFFF is no character and in no key. */
export const afterPrefix = (prefix: string): string => `${prefix}\u{10ffff}`;
