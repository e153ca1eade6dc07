import { z } from 'zod';

/** The fields of interface.md section 2.5 and decisions.md "Accounts", each with its rules. Lengths count code points. */

const lengthOf = (text: string) => [...text].length;

/** One rule of a text, by the name that `details` gives it. */
const rule = (name: string, error: string) => ({ error, params: { rule: name } });

/** Something a person can see: no account is named by zero-width characters. */
const hasVisible = (text: string) => /[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);

/** What databases and terminals trip over: NUL and lone surrogates; in one line, any control character. */
const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0');
const isOneLine = (text: string) => isStorable(text) && !/\p{Cc}/u.test(text);

const text = (max: number, isClean: (text: string) => boolean) =>
  z
    .string()
    .trim()
    .refine(isClean, rule('invalid_characters', 'Contains characters that are not allowed'))
    .refine((value) => lengthOf(value) <= max, rule('too_long', `Must have at most ${max} characters`))
    .meta({ maxLength: max });

export const name = text(100, isOneLine)
  .refine((value) => lengthOf(value) >= 2, rule('too_short', 'Must have at least 2 characters'))
  .refine(hasVisible, rule('invisible', 'Must have visible characters'))
  .meta({ minLength: 2, maxLength: 100, example: 'Ada Lovelace' });

export const bio = text(500, isStorable).meta({ example: 'Writes about engines.' });
export const location = text(100, isOneLine).meta({ example: 'London' });

/** What a file was called where it came from. Nothing is made of it, so any text will do. */
export const filename = z.string().min(1).max(1024).meta({ example: 'holiday.png' });

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const mailAddress = new RegExp(
  `^[a-z0-9!#$%&'*+/=?^_{|}~-]+(?:\\.[a-z0-9!#$%&'*+/=?^_{|}~-]+)*@(?:${label}\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$`,
  'i',
);

/** RFC 5321 4.5.3.1: 64 octets before the @, 254 in all. */
const isMailAddress = (value: string) => value.length <= 254 && value.indexOf('@') <= 64 && mailAddress.test(value);

/** One ASCII address, in lower case from here on: no two spellings ever name two accounts or one mailbox twice. */
export const email = z
  .string()
  .refine(isMailAddress, rule('invalid_email', 'Must be a valid email address'))
  .toLowerCase()
  .meta({ format: 'email', maxLength: 254, example: 'ada@example.com' });

export const newPassword = z
  .string()
  .refine((value) => lengthOf(value) >= 8, rule('too_short', 'Must have at least 8 characters'))
  .refine((value) => lengthOf(value) <= 128, rule('too_long', 'Must have at most 128 characters'))
  .refine((value) => /\p{Lu}/u.test(value), rule('uppercase', 'Must have at least one uppercase letter'))
  .refine((value) => /\p{Ll}/u.test(value), rule('lowercase', 'Must have at least one lowercase letter'))
  .refine((value) => /\p{Nd}/u.test(value), rule('digit', 'Must have at least one digit'))
  .refine(
    (value) => /[^\p{L}\p{Nd}]/u.test(value),
    rule('symbol', 'Must have at least one character that is not a letter or digit'),
  )
  .refine((value) => value.isWellFormed(), rule('invalid_characters', 'Contains characters that are not allowed'))
  .meta({ minLength: 8, maxLength: 128, example: 'Analytical-Engine-1843' });

/** At login any text may be tried; what is longer than a password can be is wrong all the same. */
export const password = z.string().min(1).meta({ example: 'Analytical-Engine-1843' });

/** A web address that is safe to show as a link; the empty string clears it. The server never fetches it. */
export const webAddress = z
  .string()
  .refine((value) => value === '' || isWebAddress(value), rule('invalid_url', 'Must be a http or https address'))
  .meta({ maxLength: 2048, example: 'https://example.com/ada' });

function isWebAddress(value: string): boolean {
  if (lengthOf(value) > 2048 || !value.isWellFormed() || !/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && url.username === '' && url.password === '';
}

/** What a mailed link carries. Anything that cannot be it is a wrong token like any other: no matter of validation. */
const mailed = z
  .unknown()
  .optional()
  .transform((value) => (typeof value === 'string' && value.length <= 1024 ? value : ''));

export const mailedToken = mailed.meta({ type: 'string', example: 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA' });
export const mailedEmail = mailed
  .transform((value) => value.toLowerCase())
  .meta({ type: 'string', format: 'email', example: 'ada@example.com' });
