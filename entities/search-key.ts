/*
 * Search keys are compared as bytes, which is the same in all databases.
 */

/** Longer than a name of 100 characters after most compatibility decompositions; the rest of a text is not searched. */
const SEARCH_KEY_LENGTH = 300;

/** Diacritics, joiners and variation selectors; invisible characters; control characters; noncharacters. */
const unsearched = /[\p{Script=Inherited}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\p{Cc}]/gu;

/**
 * The search key of a text: equal for texts that look alike or differ in case, accents, width or white space (Unicode's
 * NFKD, then case folding). Empty without a searchable character.
 */
export function searchKey(text: string): string {
  const plain = text.normalize('NFKD').replace(/\s+/g, ' ').replace(unsearched, '');
  // Via upper case, ß becomes ss and ı becomes i; JavaScript has no case folding.
  const folded = plain.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ').trim();
  return [...folded].slice(0, SEARCH_KEY_LENGTH).join('').trimEnd();
}

/** Words of a name that are searched beside its beginning. */
const MAX_LATER_WORDS = 8;

/** The rest of a search key from each of its later words on: `del carmen`, `carmen` of `maria del carmen`. */
export const laterWords = (key: string): string[] => [
  ...new Set([...key.matchAll(/(?<=[ -])[^ -]/g)].slice(0, MAX_LATER_WORDS).map(({ index }) => key.slice(index))),
];

/** The end of the range of all keys that start with `prefix`: U+10FFFF is a noncharacter and in no key. */
export const afterPrefix = (prefix: string): string => `${prefix}\u{10ffff}`;
