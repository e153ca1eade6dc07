/** What people are called and reached by, as plain checks: decisions.md "Accounts". Lengths count code points. */

/** More than any text here may have, in code units: of what is longer, nothing more exact need be known. */
const FAR_TOO_LONG = 8192;

/** In code points. */
export const lengthOf = (text: string) => (text.length > FAR_TOO_LONG ? text.length : [...text].length);

/** Something a person can see: no account is named by zero-width characters. */
export const hasVisible = (text: string) => /[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);

/** What databases and terminals trip over: NUL and lone surrogates; in one line, any control character. */
export const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0');
export const isOneLine = (text: string) => isStorable(text) && !/\p{Cc}/u.test(text);

/** Whether a trimmed text can name a person. */
export const isName = (text: string) =>
  lengthOf(text) >= 2 && lengthOf(text) <= 100 && isOneLine(text) && hasVisible(text);

/** What a person is called of whom only the address is known. `email` is one. */
export function nameFromAddress(email: string): string {
  const localPart = email.slice(0, email.indexOf('@'));
  return isName(localPart) ? localPart : email.slice(0, 100);
}

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const mailAddress = new RegExp(
  `^[a-z0-9!#$%&'*+/=?^_{|}~-]+(?:\\.[a-z0-9!#$%&'*+/=?^_{|}~-]+)*@(?:${label}\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$`,
  'i',
);

/** One ASCII address. RFC 5321 4.5.3.1: 64 octets before the @, 254 in all. */
export const isMailAddress = (value: string) =>
  value.length <= 254 && value.indexOf('@') <= 64 && mailAddress.test(value);

/** The mailbox behind a normalized address, as far as can be told: what follows a `+` is a tag (RFC 5233). */
export const inboxOf = (email: string): string => email.replace(/^([^+@]+)\+[^@]*@/, '$1@');

/** A web address that is safe to show as a link. */
export function isWebAddress(value: string): boolean {
  if (lengthOf(value) > 2048 || !value.isWellFormed() || !/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && url.username === '' && url.password === '';
}
