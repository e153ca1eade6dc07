import { validate as isUuid } from 'uuid';
import { z } from 'zod';
import type { ProfileFields } from '../entities/index.ts';
import { isMailedToken } from '../server/accounts/mailed-tokens.ts';
import {
  hasVisible,
  isMailAddress,
  isOneLine,
  isStorable,
  isWebAddress,
  lengthOf,
  normalizeEmail,
} from '../server/accounts/text-rules.ts';
import { ServiceError } from '../server/errors.ts';
import { isLanguage, type Language, languages } from '../server/texts/languages.ts';

/** The fields of interface.md section 2.5 and decisions.md "Accounts", each with its rules. Lengths count code points. */

/** One rule of a text, by the name that `details` gives it. */
const rule = (name: string, error: string) => ({ error, params: { rule: name } });

/** The first rule of each text: no other rule reads a text that is longer. */
const atMost = (max: number) =>
  [
    (value: string) => lengthOf(value) <= max,
    { ...rule('too_long', `Must have at most ${max} characters`), abort: true },
  ] as const;

const text = (max: number, isClean: (text: string) => boolean) =>
  z
    .string()
    .trim()
    .refine(...atMost(max))
    .refine(isClean, rule('invalid_characters', 'Contains characters that are not allowed'))
    .meta({ maxLength: max });

export const name = text(100, isOneLine)
  .refine((value) => lengthOf(value) >= 2, rule('too_short', 'Must have at least 2 characters'))
  .refine(hasVisible, rule('invisible', 'Must have visible characters'))
  .meta({ minLength: 2, maxLength: 100, example: 'Ada Lovelace' });

export const passkeyName = text(64, isOneLine)
  .refine(hasVisible, rule('invisible', 'Must have visible characters'))
  .meta({ minLength: 1, maxLength: 64, example: 'My laptop' });

/** A web address that is safe to show as a link; the empty string clears it. The server never fetches it. */
const webAddress = z
  .string()
  .refine((value) => value === '' || isWebAddress(value), rule('invalid_url', 'Must be a http or https address'))
  .meta({ maxLength: 2048, example: 'https://example.com/ada' });

/** The rules of the fields that users may change: exactly those of the entity. */
export const profile = {
  name,
  bio: text(500, isStorable).meta({ example: 'Writes about engines.' }).nullable(),
  location: text(100, isOneLine).meta({ example: 'London' }).nullable(),
  website: webAddress.nullable(),
  avatar: webAddress.nullable(),
} satisfies { [Field in keyof ProfileFields]: z.ZodType<ProfileFields[Field]> };

/** A language of the pages and mails. */
export const language = z
  .custom<Language>(isLanguage, rule('unknown_language', `Must be one of ${languages.join(', ')}`))
  .meta({ type: 'string', enum: [...languages], example: 'de' });

/** The name of a file at its origin. The service makes no use of it, so any text is valid. */
export const filename = z.string().min(1).max(1024).meta({ example: 'holiday.png' });

/** One ASCII address, normalized. */
export const email = z
  .string()
  .refine(isMailAddress, rule('invalid_email', 'Must be a valid email address'))
  .overwrite(normalizeEmail)
  .meta({ format: 'email', maxLength: 254, example: 'ada@example.com' });

export const newPassword = z
  .string()
  .refine(...atMost(128))
  .refine((value) => lengthOf(value) >= 8, rule('too_short', 'Must have at least 8 characters'))
  .refine((value) => /\p{Lu}/u.test(value), rule('uppercase', 'Must have at least one uppercase letter'))
  .refine((value) => /\p{Ll}/u.test(value), rule('lowercase', 'Must have at least one lowercase letter'))
  .refine((value) => /\p{Nd}/u.test(value), rule('digit', 'Must have at least one digit'))
  .refine(
    (value) => /[^\p{L}\p{Nd}]/u.test(value),
    rule('symbol', 'Must have at least one character that is not a letter or digit'),
  )
  .refine((value) => value.isWellFormed(), rule('invalid_characters', 'Contains characters that are not allowed'))
  .meta({ minLength: 8, maxLength: 128, example: 'Analytical-Engine-1843' });

/** At login any text may be tried; a text that is longer than a password can be is wrong anyway. */
export const password = z.string().min(1, 'Must not be empty').meta({ example: 'Analytical-Engine-1843' });

/** Whether a user has accepted the terms that the service has, if any. */
export const acceptTerms = z.boolean().default(false).meta({ example: true });

/** At most two addresses of 1000 characters. */
export const termsVersion = z.string().max(2048).meta({ description: 'A version of the terms', example: '2026-11' });

/** A code of an authenticator app; apps show it in two groups. */
export const code = z
  .string()
  .max(16)
  .overwrite((value) => value.replace(/\s/g, ''))
  .refine((value) => /^\d{6}$/.test(value), rule('invalid_code', 'Must have six digits'))
  .meta({ example: '123456' });

/** Any text may be tried. Case, dashes and spaces do not count. */
export const recoveryCode = z.string().min(1).max(64).meta({ example: '7n0q-v3kd-9w2h-x5ta' });

/** An object of which exactly one field is given. */
export const oneOf = <Shape extends Record<string, z.ZodType>>(shape: Shape) =>
  z
    .object(shape)
    .partial()
    .refine(
      (given) => Object.values(given).filter((value) => value !== undefined).length === 1,
      rule('exactly_one', `Must have one of ${Object.keys(shape).join(', ')}`),
    );

/**
 * The token of a mailed link. Input that cannot be a token is INVALID_TOKEN, whatever else is missing: thrown instead
 * of reported as an issue, because the error of a schema is always VALIDATION_FAILED.
 */
export const mailedToken = z
  .unknown()
  .transform((value) => {
    if (typeof value === 'string' && isMailedToken(value)) return value;
    throw new ServiceError('INVALID_TOKEN');
  })
  .meta({ type: 'string', example: 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA' });

/** The address that a token was mailed to. Any other text is that of no token; without one the caller has left it out. */
export const mailedEmail = z
  .string()
  .transform((value) => (value.length <= 254 ? normalizeEmail(value) : ''))
  .meta({ type: 'string', format: 'email', example: 'ada@example.com' });

export const LARGEST_PAGE = 100;

/** The number of entries on a page of a list. */
export const pageLimit = z.coerce
  .number<number>()
  .int()
  .min(1)
  .max(LARGEST_PAGE)
  .optional()
  .meta({ description: `At most this many, 1 to ${LARGEST_PAGE}, which is the default` });

/** The cursor of a list whose ids are UUIDs. */
export const uuidCursor = z
  .string()
  .refine(isUuid, rule('invalid_cursor', 'Must be a cursor from an earlier page'))
  .optional()
  .meta({ description: 'nextCursor of the page before' });
