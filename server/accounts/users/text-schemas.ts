import { z } from 'zod';
import { isAtMost, isWebAddress } from './text-rules.ts';

/** One rule of a text, with its name in `details`. */
export const rule = (name: string, error: string) => ({ error, params: { rule: name } });

/** The first rule of each text: other rules never read a text that is too long. Lengths are in code points. */
export const atMost = (max: number) =>
  [
    (value: string) => isAtMost(value, max),
    { ...rule('too_long', `Must have at most ${max} characters`), abort: true },
  ] as const;

export const text = (max: number, isClean: (text: string) => boolean) =>
  z
    .string()
    .trim()
    .refine(...atMost(max))
    .refine(isClean, rule('invalid_characters', 'Contains characters that are not allowed'))
    .meta({ maxLength: max });

/** A web address that is safe as a link; the empty string clears it. The server never fetches it. */
export const webAddress = z
  .string()
  .refine((value) => value === '' || isWebAddress(value), rule('invalid_url', 'Must be an http or https URL'))
  .meta({ maxLength: 2048, example: 'https://example.com/ada' });
