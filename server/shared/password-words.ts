/** What a password must not consist of: parts of the user's name and address, and the name of the site. */
export const wordsAbout = (...texts: (string | undefined)[]): string[] => [
  ...new Set(texts.flatMap((text = '') => [text, ...text.split(/[^\p{L}\p{Nd}]+/u)]).filter((word) => word.length > 2)),
];

/** The time to estimate grows with the square of the length. */
const MAX_ESTIMATED = 72;

/** Ways to read digits as letters: each repeats the whole estimate. The default of the library is 100. */
export const MAX_SUBSTITUTIONS = 10;

/** The dictionaries are plain objects: a part that each object has gets no rank, and would not count as a known word. */
const NAMES_OF_OBJECTS = /constructor|rotcurtsnoc|__proto__/gi;

/** What of a password the estimate gets. A known word counts as one character. */
export const estimated = (password: string): string => password.slice(0, MAX_ESTIMATED).replace(NAMES_OF_OBJECTS, 'x');
