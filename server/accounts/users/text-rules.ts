/**
 * The rules of names, email addresses and web addresses, as plain checks (design/users.md). Lengths count code points.
 */

export { isMailAddress } from '../../shared/mail-address.ts';

/** No text here may have this many code units. Code points of longer texts are not counted. */
const FAR_TOO_LONG = 8192;

/** In code points. */
export const lengthOf = (text: string) => (text.length > FAR_TOO_LONG ? text.length : [...text].length);

/** Whether a text has at most this many code points. */
export const isAtMost = (text: string, max: number) => text.length <= max || lengthOf(text) <= max;

/** Whether a text has a visible character. A name of zero-width characters only is invalid. */
export const hasVisible = (text: string) => /[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);

/** Databases and terminals reject NUL and lone surrogates. A single line must not contain control characters. */
export const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0');
export const isOneLine = (text: string) => isStorable(text) && !/\p{Cc}/u.test(text);

/** Whether a trimmed text is a valid name. */
export const isName = (text: string) =>
  lengthOf(text) >= 2 && isAtMost(text, 100) && isOneLine(text) && hasVisible(text);

/** A name for a user who has given only an address. `email` must be valid. */
export function nameFromAddress(email: string): string {
  const localPart = email.slice(0, email.indexOf('@'));
  return isName(localPart) ? localPart : email.slice(0, 100);
}

/** The stored form of an address. Spellings that differ in case belong to one account. */
export const normalizeEmail = (email: string): string => email.toLowerCase();

/** The inbox of a normalized address, on the assumption that the part after a `+` is a tag (RFC 5233). */
export const inboxOf = (email: string): string => email.replace(/^([^+@]+)\+[^@]*@/, '$1@');

/** A web address that is safe to show as a link. */
export function isWebAddress(value: string): boolean {
  if (!isAtMost(value, 2048) || !value.isWellFormed() || !/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && url.username === '' && url.password === '';
}
