import { z } from 'zod';
import { type BrandColors, colorsOfBrand, problemWithColor } from './brand-color.ts';
import type { Environment } from './values.ts';

/** Whose product it is: what pages and mails show of it, and what its users accept. */

/** In code points. It is part of subjects, and of the titles of pages. */
const LONGEST_NAME = 60;
const LONGEST_VERSION = 100;
/** So that the default of TERMS_VERSION fits its column. */
const LONGEST_ADDRESS = 1000;

/** A line break would end a header of a mail. */
const oneLine = (longest: number) =>
  z
    .string()
    .trim()
    .refine(
      (text) =>
        text !== '' && [...text].length <= longest && text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text),
      `must be one line of 1 to ${longest} characters`,
    );

/** Of a page or picture; without spaces, quotes and what else an address has only encoded. */
function isLink(text: string, protocols: string[]): boolean {
  if (text.length > LONGEST_ADDRESS || !/^[!#-;=?-[\]_a-z~]+$/i.test(text)) return false;
  const url = URL.parse(text);
  return url !== null && protocols.includes(url.protocol) && url.username === '' && url.password === '';
}

const isPath = (text: string): boolean => isLink(`https://host${text}`, ['https:']) && /^\/(?!\/)/.test(text);

const publicLink = z
  .string()
  .refine(
    (text) => isPath(text) || isLink(text, ['https:']),
    'must be an address that starts with https://, or a path of this host that starts with /',
  );

const contact = z
  .string()
  .refine(
    (text) => isLink(text, ['https:']) || (isLink(text, ['mailto:']) && /^mailto:[^@?]+@[^@?]+(?:\?.*)?$/.test(text)),
    'must be an address that starts with https://, or mailto: and an email address',
  );

const brandColor = z
  .string()
  .regex(/^#?[0-9a-f]{6}$/i, { error: 'must look like 4f46e5 or #4f46e5', abort: true })
  // In a file `.env` a # without quotes begins a comment.
  .transform((text) => `#${text.replace('#', '').toLowerCase()}`)
  .superRefine((color, context) => {
    const message = problemWithColor(color);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

export const brandVariables = {
  APP_NAME: oneLine(LONGEST_NAME).optional(),
  APP_LOGO_URL: publicLink.optional(),
  BRAND_COLOR: brandColor.optional(),
  SUPPORT_URL: contact.optional(),
  TERMS_URL: publicLink.optional(),
  PRIVACY_URL: publicLink.optional(),
  TERMS_VERSION: oneLine(LONGEST_VERSION).optional(),
};

type BrandEnvironment = z.output<z.ZodObject<typeof brandVariables>>;

/** What pages and mails show. Addresses are as they were given: a path is one of the host of APP_URL. */
export interface Brand {
  /** Undefined: pages and mails have each a name of their own for the service. */
  name: string | undefined;
  logo: string | undefined;
  colors: BrandColors | undefined;
  support: string | undefined;
  terms: string | undefined;
  privacy: string | undefined;
}

export const brandOf = (env: BrandEnvironment): Brand => ({
  name: env.APP_NAME,
  logo: env.APP_LOGO_URL,
  colors: env.BRAND_COLOR === undefined ? undefined : colorsOfBrand(env.BRAND_COLOR),
  support: env.SUPPORT_URL,
  terms: env.TERMS_URL,
  privacy: env.PRIVACY_URL,
});

/** What new users accept, as it is stored with their consent; undefined where there is nothing to accept. */
export function termsVersionOf({ TERMS_URL, PRIVACY_URL, TERMS_VERSION }: BrandEnvironment): string | undefined {
  const addresses = [TERMS_URL, PRIVACY_URL].filter((address) => address !== undefined);
  return addresses.length > 0 ? (TERMS_VERSION ?? addresses.join(' ')) : undefined;
}

export const termsProblems = ({ TERMS_URL, PRIVACY_URL, TERMS_VERSION }: Environment): string[] =>
  TERMS_VERSION && !TERMS_URL && !PRIVACY_URL
    ? ['TERMS_URL or PRIVACY_URL is missing: TERMS_VERSION says which version of them users accept']
    : [];
