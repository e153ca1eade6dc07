import { isIP } from 'node:net';
import { z } from 'zod';
import { openHashList } from '../lib/hash-list.ts';
import { defaultUploadTypes, isUploadType } from '../lib/media-types.ts';
import { type ImagePurpose, imagePurposes, MAX_VARIANTS, pictureSides } from '../shared/image-limits.ts';

/**
 * The syntax of variables, and their parsed values. Each error continues a sentence that begins with the variable's
 * name.
 */

export type Environment = Record<string, string | undefined>;

/** `points` uses in `seconds`. */
export interface Rate {
  points: number;
  seconds: number;
}

/** Comma-separated entries; surrounding spaces and empty entries are ignored. */
const entriesOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);

export const addressOf = (...protocols: string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), {
    error: `must be an address that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
  });

/** One URL per host of `mysql://user:password@host1,host2:3307/database`. */
export function addressPerHost(text: string): string[] {
  const [, before = '', hosts = '', after = ''] = /^([^/?#]*\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(text) ?? [];
  return hosts.split(',').map((host) => before + host + after);
}

const sslModes = ['DISABLED', 'REQUIRED', 'VERIFY_CA', 'VERIFY_IDENTITY'] as const;
/** The modes as MySQL's own clients name them. REQUIRED encrypts, but verifies no certificate. */
export type SslMode = (typeof sslModes)[number];

/** True if `decodeURIComponent` can decode user, password and database. */
export function canDecode({ username, password, pathname }: URL): boolean {
  try {
    for (const text of [username, password, pathname]) decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

const isSslMode = (text: string): text is SslMode => sslModes.some((mode) => mode === text);

/** The mode of a URL that `databaseAddress` has accepted. */
export const sslModeOf = (text: string): SslMode =>
  (URL.parse(addressPerHost(text)[0] ?? '')?.searchParams.get('ssl-mode') ?? 'DISABLED') as SslMode;

/** `mysql://user:password@host1,host2/database?ssl-mode=VERIFY_IDENTITY`. */
export const databaseAddress = z.string().superRefine((text, context) => {
  const report = (message: string) => context.addIssue({ code: 'custom', message });
  const urls = addressPerHost(text).map((address) => URL.parse(address));
  if (!urls.every((url) => url?.protocol === 'mysql:' && url.hostname))
    report('must be an address that starts with mysql://');
  else if (urls.some((url) => (url?.pathname.length ?? 0) < 2)) report('must name a database: mysql://…/accounts');
  else if (urls.some((url) => [...(url?.searchParams.keys() ?? [])].some((name) => name !== 'ssl-mode')))
    report('has a parameter other than ssl-mode');
  else if (!urls.every((url) => url && canDecode(url)))
    report('has a % in user, password or database that is not an escape: write %25');
  else if (!isSslMode(sslModeOf(text))) report(`has an ssl-mode other than ${sslModes.join(', ')}`);
  // mysql2 would compare the certificate with `localhost`.
  else if (
    sslModeOf(text) === 'VERIFY_IDENTITY' &&
    urls.some((url) => url && isIP(url.hostname.replace(/^\[|\]$/g, '')))
  )
    report('must name hosts, not their IP addresses, for ssl-mode=VERIFY_IDENTITY');
});

/** Separated by commas, so each has one host. */
export const databaseAddresses = z.string().default('').transform(entriesOf).pipe(z.array(databaseAddress));

const withoutTrailingSlash = (text: string) => text.replace(/\/+$/, '');

/**
 * The spelling of browsers, so that URLs can be compared as text: lower-case host, no default port, no trailing slash.
 */
const normalized = (text: string) => withoutTrailingSlash(new URL(text).href);

/** `clamd://host:3310`, or the URL to which a scanner takes files. */
export const scannerAddress = addressOf('clamd:', 'https:', 'http:')
  .refine(
    (text) => URL.parse(text)?.protocol !== 'clamd:' || /^clamd:\/\/[^/?#@]+\/?$/.test(text),
    'must look like clamd://host:3310',
  )
  .refine((text) => !URL.parse(text)?.hash, 'must have no fragment')
  .refine((text) => URL.parse(text)?.hostname !== '', 'must name a host');

/** A URL to which paths are appended. */
export const baseAddress = () =>
  addressOf('http:', 'https:')
    .refine((text) => {
      const url = URL.parse(text);
      return !url || !(url.username || url.password || url.search || url.hash);
    }, 'must have no user, query or fragment')
    .transform((text) => (URL.canParse(text) ? normalized(text) : text));

export const whole = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`);

const rateText = z
  .string()
  .regex(/^[1-9]\d{0,8}\/[1-9]\d{0,6}$/, 'must look like 5/900: how often / in how many seconds');

const toRate = (text: string): Rate => {
  const [points, seconds] = text.split('/').map(Number) as [number, number];
  return { points, seconds };
};

/** A file that `npm run breached-passwords` has made. */
export const hashListFile = z.string().superRefine((path, context) => {
  try {
    openHashList(path).close();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    context.addIssue({ code: 'custom', message: `must be a file made by \`npm run breached-passwords\`: ${reason}` });
  }
});

/** `5/900`: five times in 900 seconds. */
export const rate = (points: number, seconds: number) => rateText.default(`${points}/${seconds}`).transform(toRate);

/** A rate without a default: zero points (unset) mean no limit. */
export const optionalRate = rateText.transform(toRate).default({ points: 0, seconds: 0 });

/** One or more: spaces are part of a secret, except around a comma. */
export const secretsIn = (text: string) => text.split(/\s*,\s*/) as [string, ...string[]];

export const secrets = z
  .string()
  .transform(secretsIn)
  .refine((list) => list.every((secret) => secret.length >= 32), {
    error: 'must have at least 32 characters; if there are several, separated by commas, each must',
  });

export const origins = z
  .string()
  .default('')
  .transform((text) => entriesOf(text).map(withoutTrailingSlash))
  .refine(
    (list) =>
      list.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin && !origin.includes('*')),
    {
      error: 'must be origins like https://app.example.com, separated by commas',
    },
  );

const domain = /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** `example.com`, and `*.example.com` for subdomains, in lower case like stored addresses. */
export const domains = z
  .string()
  .default('')
  .transform((text) => entriesOf(text).map((entry) => entry.toLowerCase()))
  .refine((list) => list.every((entry) => entry.length <= 255 && domain.test(entry)), {
    error: 'must be domains like example.com, or *.example.com for those below it, separated by commas',
  });

export const uploadTypes = z
  .string()
  .default(defaultUploadTypes.join(','))
  .transform(entriesOf)
  .refine((list) => list.length > 0 && list.every(isUploadType), {
    error: 'must be media types that the service knows, such as image/png,application/pdf, separated by commas',
  });

/** The widths of the smaller pictures of an image by its purpose, in ascending order. */
export type ImageSizes = Readonly<Record<ImagePurpose, readonly number[]>>;

const defaultImageSizes = 'avatar:64,256;post:320,640,1280';
const MIN_WIDTH = 16;

/** `avatar:64,256;post:320,640,1280`, or `off`. */
export const imageSizes = z
  .string()
  .default(defaultImageSizes)
  .transform((text, context): ImageSizes => {
    const sizes: Partial<Record<string, readonly number[]>> = {};
    const report = (message: string) => context.addIssue({ code: 'custom', message });
    for (const entry of text.trim() === 'off' ? [] : text.split(';')) {
      const [, purpose = '', list = ''] = /^\s*([a-z]+)\s*:([\d\s,]+)$/.exec(entry) ?? [];
      const widths = entriesOf(list).map(Number);
      const most = pictureSides[purpose as ImagePurpose] - 1;
      if (widths.length === 0) report(`must be off, or widths like ${defaultImageSizes}`);
      else if (Number.isNaN(most)) report(`has ${purpose}, which is none of ${imagePurposes.join(', ')}`);
      else if (sizes[purpose]) report(`has ${purpose} twice`);
      else if (widths.length > MAX_VARIANTS) report(`has more than ${MAX_VARIANTS} widths for ${purpose}`);
      else if (!widths.every((width) => width >= MIN_WIDTH && width <= most))
        report(`must have widths between ${MIN_WIDTH} and ${most} for ${purpose}: the stored picture has ${most + 1}`);
      sizes[purpose] = [...new Set(widths)].sort((a, b) => a - b);
    }
    const { avatar = [], post = [] } = sizes;
    return { avatar, post };
  });

/** `10.0.0.0/8,fd00::/8`. */
export const networks = z
  .string()
  .default('')
  .transform(entriesOf)
  .refine((list) => list.every(isNetwork), {
    error: 'must be networks like 10.0.0.0/8, separated by commas',
  });

function isNetwork(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const max = { 4: 32, 6: 128 }[isIP(address)];
  return max !== undefined && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= max;
}

const serviceName = '[A-Za-z0-9][A-Za-z0-9._-]{0,63}';
export const isServiceName = (text: string): boolean => new RegExp(`^${serviceName}$`).test(text);

export const serviceTokens = z
  .string()
  .default('')
  .transform(entriesOf)
  .refine((list) => list.every((entry) => new RegExp(`^${serviceName}:[0-9a-f]{64}$`, 'i').test(entry)), {
    error: 'must be entries like name:sha256-in-hex, separated by commas, as `npm run service-token` prints them',
  })
  .transform((list) =>
    list.map((entry) => {
      const [name, sha256] = entry.split(':') as [string, string];
      return { name, sha256 };
    }),
  );
