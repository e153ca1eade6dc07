import { z } from 'zod';
import { type BrandColors, colorsOfBrand, problemWithColor } from './brand-color.ts';
import type { Environment } from './values.ts';

/** The brand: what pages and mails show of the product, and what its users accept. */

/** In code points. The name is part of mail subjects and page titles. */
const MAX_NAME = 60;
const MAX_VERSION = 100;
/** The default of TERMS_VERSION must fit into its column. */
const MAX_ADDRESS = 1000;

/** A line break would end a mail header. */
const oneLine = (longest: number) =>
  z
    .string()
    .trim()
    .refine(
      (text) =>
        text !== '' && [...text].length <= longest && text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text),
      `must be one line of 1 to ${longest} characters`,
    );

/** The link of a page or picture, without spaces, quotes and other characters that a URL must encode. */
function isLink(text: string, protocols: string[]): boolean {
  if (text.length > MAX_ADDRESS || !/^[!#-;=?-[\]_a-z~]+$/i.test(text)) return false;
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

/** The address of a page of the product, on any host. */
const page = z
  .string()
  .refine((text) => isLink(text, ['https:', 'http:']), 'must be an address that starts with https://');

const contact = z
  .string()
  .refine(
    (text) => isLink(text, ['https:']) || (isLink(text, ['mailto:']) && /^mailto:[^@?]+@[^@?]+(?:\?.*)?$/.test(text)),
    'must be an address that starts with https://, or mailto: and an email address',
  );

const brandColor = z
  .string()
  .regex(/^#?[0-9a-f]{6}$/i, { error: 'must look like 4f46e5 or #4f46e5', abort: true })
  // In a file `.env` an unquoted # begins a comment.
  .transform((text) => `#${text.replace('#', '').toLowerCase()}`)
  .superRefine((color, context) => {
    const message = problemWithColor(color);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

const timeZone = z.string().refine((zone) => isTimeZone(zone), 'must be a time zone such as Europe/Berlin');

function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

export const brandVariables = {
  APP_NAME: oneLine(MAX_NAME).optional(),
  APP_HOME_URL: page.optional(),
  APP_LOGO_URL: publicLink.optional(),
  BRAND_COLOR: brandColor.optional(),
  SUPPORT_URL: contact.optional(),
  TERMS_URL: publicLink.optional(),
  PRIVACY_URL: publicLink.optional(),
  TERMS_VERSION: oneLine(MAX_VERSION).optional(),
  TIME_ZONE: timeZone.default('UTC'),
};

type BrandEnvironment = z.output<z.ZodObject<typeof brandVariables>>;

/** The branding of pages and mails. Links are as given: a path is one on the host of APP_URL. */
export interface Brand {
  /** Undefined: pages and mails use their own default names. */
  name: string | undefined;
  logo: string | undefined;
  /** The product: where pages and mails lead back to, and where a login ends by default. */
  home: string | undefined;
  colors: BrandColors | undefined;
  support: string | undefined;
  terms: string | undefined;
  privacy: string | undefined;
}

export const brandOf = (env: BrandEnvironment): Brand => ({
  name: env.APP_NAME,
  logo: env.APP_LOGO_URL,
  home: env.APP_HOME_URL,
  colors: env.BRAND_COLOR === undefined ? undefined : colorsOfBrand(env.BRAND_COLOR),
  support: env.SUPPORT_URL,
  terms: env.TERMS_URL,
  privacy: env.PRIVACY_URL,
});

/** The terms that new users accept, as stored with their consent; undefined without terms. */
export function termsVersionOf({ TERMS_URL, PRIVACY_URL, TERMS_VERSION }: BrandEnvironment): string | undefined {
  const addresses = [TERMS_URL, PRIVACY_URL].filter((address) => address !== undefined);
  return addresses.length > 0 ? (TERMS_VERSION ?? addresses.join(' ')) : undefined;
}

export const termsProblems = ({ TERMS_URL, PRIVACY_URL, TERMS_VERSION }: Environment): string[] =>
  TERMS_VERSION && !TERMS_URL && !PRIVACY_URL
    ? ['TERMS_URL or PRIVACY_URL is missing: TERMS_VERSION says which version of them users accept']
    : [];
