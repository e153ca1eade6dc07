import { z } from 'zod';
import type { ProfileFields } from '../../entities/index.ts';
import {
  atMost,
  hasVisible,
  isMailAddress,
  isOneLine,
  isStorable,
  lengthOf,
  normalizeEmail,
  rule,
  shortText,
  text,
  webAddress,
} from '../../server/accounts/users/index.ts';
import { ServiceError } from '../../server/errors.ts';
import { isToken } from '../../server/lib/random-token.ts';
import { isLanguage, type Language, languages } from '../../server/shared/texts/languages.ts';

/**
 * The fields of interface.md section 2.5 and design/users.md, each with its rules. Lengths are in code points.
 */

export const name = text(100, isOneLine)
  .refine((value) => lengthOf(value) >= 2, rule('too_short', 'Must have at least 2 characters'))
  .refine(hasVisible, rule('invisible', 'Must contain a visible character'))
  .meta({ minLength: 2, maxLength: 100, example: 'Ada Lovelace' });

export const passkeyName = text(64, isOneLine)
  .refine(hasVisible, rule('invisible', 'Must contain a visible character'))
  .meta({ minLength: 1, maxLength: 64, example: 'My laptop' });

export const keyName = passkeyName.meta({ example: 'Backup' });

/** The fields that users may change: exactly those of the entity. */
export const profile = {
  name,
  bio: text(500, isStorable).meta({ example: 'Writes about engines.' }).nullable(),
  location: text(100, isOneLine).meta({ example: 'London' }).nullable(),
  website: webAddress.nullable(),
  avatar: webAddress.nullable(),
} satisfies { [Field in keyof ProfileFields]: z.ZodType<ProfileFields[Field]> };

export const language = z
  .custom<Language>(isLanguage, rule('unknown_language', `Must be one of ${languages.join(', ')}`))
  .meta({ type: 'string', enum: [...languages], example: 'de' });

export const visibility = z
  .enum(['public', 'private'])
  .meta({ description: '`public`: everyone can read it; `private`: only at an address of `upload.address`' });

/** The name of a file at its origin. The service ignores it, so any text is valid. */
export const filename = z.string().min(1).max(1024).meta({ example: 'holiday.png' });

/** One ASCII address, normalized. */
export const email = z
  .string()
  .refine(isMailAddress, rule('invalid_email', 'Must be a valid email address'))
  .overwrite(normalizeEmail)
  .meta({ format: 'email', maxLength: 254, example: 'ada@example.com' });

/** Any text is allowed; undefined for an invalid address, which no account has. */
export const anyEmail = z
  .string()
  .transform((value) => (isMailAddress(value) ? normalizeEmail(value) : undefined))
  .meta({ type: 'string', format: 'email', example: 'ada@example.com' });

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

/** At login any text is allowed; a text beyond the maximum length of a password is wrong anyway. */
export const password = z.string().min(1, 'Must not be empty').meta({ example: 'Analytical-Engine-1843' });

/** True if the user has accepted the terms of the service, if there are any. */
export const acceptTerms = z.boolean().default(false).meta({ example: true });

/** At most two URLs of 1000 characters. */
export const termsVersion = z.string().max(2048).meta({ description: 'A version of the terms', example: '2026-11' });

/** A code of an authenticator app; apps display it in two groups. */
export const code = shortText(16)
  .overwrite((value) => value.replace(/\s/g, ''))
  .refine((value) => /^\d{6}$/.test(value), rule('invalid_code', 'Must have six digits'))
  .meta({ example: '123456' });

/** Any text is allowed. Case, dashes and spaces are ignored. */
export const recoveryCode = z.string().min(1).max(64).meta({ example: '7n0q-v3kd-9w2h-x5ta' });

/** An object with exactly one of the fields. */
export const oneOf = <Shape extends Record<string, z.ZodType>>(shape: Shape) =>
  z
    .object(shape)
    .partial()
    .refine(
      (given) => Object.values(given).filter((value) => value !== undefined).length === 1,
      rule('exactly_one', `Must have one of ${Object.keys(shape).join(', ')}`),
    );

/**
 * The token of a mailed link. Malformed input is INVALID_TOKEN: thrown instead of reported as an issue, because a
 * schema's error is always VALIDATION_FAILED.
 */
export const mailedToken = z
  .unknown()
  .transform((value) => {
    if (typeof value === 'string' && isToken(value)) return value;
    throw new ServiceError('INVALID_TOKEN');
  })
  .meta({ type: 'string', example: 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA' });

/** The address that a token was mailed to. Other text matches no token; undefined if the caller omits it. */
export const mailedEmail = z
  .string()
  .transform((value) => (value.length <= 254 ? normalizeEmail(value) : ''))
  .meta({ type: 'string', format: 'email', example: 'ada@example.com' });
