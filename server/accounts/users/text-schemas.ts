import { z } from 'zod';
import { isAtMost, isWebAddress } from './text-rules.ts';

/** One rule of a text, with its name in `details`. */
export const rule = (name: string, error: string) => ({ error, params: { rule: name } });

/** A rule and who passes it, as the arguments of `refine`. With `abort`, the rules after a broken one are not checked. */
export type Check<Value = string> = readonly [
  passes: (value: Value) => boolean,
  broken: ReturnType<typeof rule> & { abort?: boolean },
];

/** The first rule of each text: other rules never read a text that is too long. Lengths are in code points. */
export const atMost = (max: number): Check => [
  (value) => isAtMost(value, max),
  { ...rule('too_long', `Must have at most ${max} characters`), abort: true },
];

export const textChecks = (max: number, isClean: (text: string) => boolean): Check[] => [
  atMost(max),
  [isClean, rule('invalid_characters', 'Contains characters that are not allowed')],
];

export const text = (max: number, isClean: (text: string) => boolean) =>
  textChecks(max, isClean)
    .reduce((schema, check) => schema.refine(...check), z.string().trim())
    .meta({ maxLength: max });

/** A text of at most `max` code units: other rules never read a longer one. */
export const shortText = (max: number) => z.string().max(max, { abort: true });

export const isUnsetOr =
  (passes: (value: string) => boolean) =>
  (value: string): boolean =>
    value === '' || passes(value);

export const webAddressCheck: Check = [
  isUnsetOr(isWebAddress),
  { ...rule('invalid_url', 'Must be an http or https URL'), abort: true },
];

/** A web address that is safe as a link; the empty string clears it. The server never fetches it. */
export const webAddress = z
  .string()
  .refine(...webAddressCheck)
  .meta({ maxLength: 2048, example: 'https://example.com/ada' });
