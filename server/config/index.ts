/*
 * The embedded mail and identity provider let a caller become any user: they also need `hasDevTools`.
 */

import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { isUploadType } from '../lib/media-types.ts';
import { brandOf, brandVariables, termsProblems, termsVersionOf } from './brand.ts';
import { hasDevTools, isOnThisMachine } from './dev-tools.ts';
import { identityProvidersIn, identityProviderVariables } from './identity-providers.ts';
import { insecureSettings, settingsToWarnOf } from './insecure-settings.ts';
import { limitVariables, ratesOf } from './limits.ts';
import { profileFieldsIn } from './profile-fields.ts';
import { redisSentinel, redisUrl } from './redis.ts';
import { tracesOf, traceVariables } from './traces.ts';
import {
  addressOf,
  baseAddress,
  databaseAddress,
  databaseAddresses,
  domains,
  type Environment,
  hashListFile,
  imageSizes,
  networks,
  origins,
  scannerAddress,
  secrets,
  serviceTokens,
  uploadTypes,
  whole,
} from './values.ts';

export { type LimitName as RateName, variableOf as limitVariable } from './limits.ts';
export type { RedisNode, RedisSentinel } from './redis.ts';
export { type ImageSizes, isServiceName, type Rate } from './values.ts';

/**
 * A URL without a path. The service's paths begin at the root; minio would drop a path of the storage, which the
 * signature covers.
 */
const rootAddress = () =>
  baseAddress().refine((text) => (URL.parse(text)?.pathname ?? '/') === '/', 'must have no path');

/** Every variable, in the order of .env.example. */
const variables = {
  NODE_ENV: z.enum(['development', 'test', 'production']).default('development'),
  PORT: whole(1, 65535).default(3000),
  HOST: z.string().optional(),
  APP_URL: rootAddress().optional(),
  DEV_TOOLS: z.enum(['on', 'off']).optional(),
  ALLOWED_ORIGINS: origins,
  API_HOST: z
    .string()
    .regex(
      /^(?:[a-z]+:\/\/)?(?:\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*)(?::(?:\d+|\*))?(?:\/[\w./-]*)?$/i,
      'must be a host or an origin',
    )
    .optional(),
  APP_SECRET: secrets.optional(),
  DATABASE_URL: databaseAddress.optional(),
  DATABASE_REPLICA_URLS: databaseAddresses,
  REDIS_URL: redisUrl.optional(),
  REDIS_SENTINEL: redisSentinel.optional(),
  SMTP_URL: addressOf('smtp:', 'smtps:').optional(),
  MAIL_FROM: z
    .string()
    .regex(/^(?:[^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/, 'must be an address, or Name <address>')
    .optional(),
  S3_ENDPOINT: rootAddress().optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z
    .string()
    .regex(
      /^[a-z0-9](?!.*\.\.)[a-z0-9.-]{1,61}[a-z0-9]$/,
      'must be the name of a bucket: 3 to 63 lower case letters, digits, hyphens and single dots',
    )
    .refine((name) => !isIP(name), 'must be the name of a bucket, not an IP address')
    .optional(),
  S3_ACCESS_KEY: z.string().optional(),
  S3_SECRET_KEY: z.string().optional(),
  S3_SESSION_TOKEN: z.string().optional(),
  S3_PUBLIC_URL: baseAddress().optional(),
  S3_UPLOAD_ENDPOINT: rootAddress().optional(),
  ...identityProviderVariables,
  COOKIE_DOMAIN: z
    .string()
    .regex(/^\.?[A-Za-z0-9.-]+$/, 'must be a domain name')
    .optional(),
  TRUST_PROXY: whole(0, 16).default(0),
  SERVICE_TOKENS: serviceTokens,
  CA_FILE: z.string().optional(),
  WEB_CONCURRENCY: whole(1, 256).default(1),
  DATA_DIR: z.string().default('.data'),
  PAGES: z.enum(['on', 'off']).default('on'),
  ...brandVariables,
  TEXTS_DIR: z.string().optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('info'),
  METRICS_PORT: whole(1, 65535).optional(),
  METRICS_HOST: z.string().default('127.0.0.1'),
  ...traceVariables,
  PASSWORD_ITERATIONS: whole(1, 10_000_000).default(100_000),
  PASSWORD_STRENGTH: whole(0, 4).default(0),
  BREACHED_PASSWORDS_FILE: hashListFile.optional(),
  ...limitVariables,
  CHALLENGE: z.enum(['off', 'auto', 'always']).default('off'),
  // At least as long as a mail about a new device accepts a response.
  ACTIVITY_DAYS: whole(7, 36_500).default(180),
  DELETION_GRACE_DAYS: whole(1, 3650).default(14),
  REGISTRATION: z.enum(['open', 'domains', 'invited', 'closed']).default('open'),
  REGISTRATION_DOMAINS: domains,
  EMAIL_CODES: z.enum(['on', 'off']).default('off'),
  IMPERSONATION: z.enum(['on', 'quiet', 'off']).default('off'),
  PUBLIC_USERS: z.enum(['full', 'without-email', 'session', 'off']).default('full'),
  AVATARS: z.enum(['any', 'own']).default('any'),
  PROFILE_FIELDS: z.string().optional(),
  UPLOADS: z.enum(['disk']).optional(),
  UPLOAD_TYPES: uploadTypes,
  // At most the size that S3 accepts in one PUT.
  UPLOAD_MAX_BYTES: whole(1, 5 * 1024 ** 3).default(50 * 1024 ** 2),
  UPLOAD_QUOTA: whole(1).default(1024 ** 3),
  IMAGE_SIZES: imageSizes,
  SCAN_URL: scannerAddress.optional(),
  SCAN_DOWN: z.enum(['wait', 'allow']).default('wait'),
  WEBHOOK_CONCURRENCY: whole(1, 100).default(8),
  WEBHOOK_ALLOW: networks,
};

export const variableNames = Object.keys(variables);

/** The variables that production requires, because no embedded part replaces them there. */
export const requiredInProduction = [
  'APP_URL',
  'APP_SECRET',
  'DATABASE_URL',
  'REDIS_URL',
  'SMTP_URL',
  'MAIL_FROM',
  'S3_ENDPOINT',
  'S3_BUCKET',
  'S3_ACCESS_KEY',
  'S3_SECRET_KEY',
] as const satisfies (keyof typeof variables)[];

/**
 * The variables that are required without development tools: the embedded mailbox shows every token to every caller.
 */
const requiredWithoutDevTools = ['SMTP_URL', 'MAIL_FROM'] as const satisfies (keyof typeof variables)[];

/** Variables that belong together: outside production all of them or none. */
const s3 = ['S3_ENDPOINT', 'S3_BUCKET', 'S3_ACCESS_KEY', 'S3_SECRET_KEY'] as const satisfies (keyof typeof variables)[];

const isOfS3 = (name: string): boolean => s3.some((each) => each === name);

const isOnDisk = ({ UPLOADS: uploads }: Environment): boolean => uploads === 'disk';

const schema = z.object(variables);

/** The environment is unusable; the message names every missing or malformed variable. */
export class ConfigError extends Error {
  constructor(problems: string[]) {
    super(`The configuration cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

export type Config = ReturnType<typeof parseConfig>;

/** Parses an environment; an empty variable counts as unset. Throws ConfigError with all problems. */
export function parseConfig(environment: Environment) {
  const env = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(env);
  const isMissing = (name: string) => env[name] === undefined;
  const problems = parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`);
  const isProduction = env['NODE_ENV'] === 'production';
  if (parsed.success && parsed.data.METRICS_PORT === parsed.data.PORT)
    problems.push('METRICS_PORT must differ from PORT');
  if (isProduction) {
    const required = requiredInProduction.filter((name) => !(isOnDisk(env) && isOfS3(name)));
    problems.push(...required.filter(isMissing).map((name) => `${name} is missing: production needs it`));
    problems.push(...insecureSettings(env));
  } else {
    const missing = hasDevTools(env) ? [] : requiredWithoutDevTools.filter(isMissing);
    problems.push(
      ...missing.map(
        (name) => `${name} is missing: no embedded mailbox without DEV_TOOLS=on unless APP_URL is http://localhost`,
      ),
    );
    if (!s3.every(isMissing)) {
      problems.push(...s3.filter(isMissing).map((name) => `${name} is missing: S3 needs ${s3.join(', ')}`));
    }
  }
  problems.push(...contradictions(env));
  const identityProviders = identityProvidersIn(env, { devTools: hasDevTools(env) });
  problems.push(...identityProviders.problems);
  const profileFields = profileFieldsIn(env);
  problems.push(...profileFields.problems);
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({
    ...assemble(parsed.data),
    /** The configured identity providers by name. */
    identityProviders: identityProviders.clients,
    embeddedProvider: identityProviders.embedded,
    /** The operator's own fields of profiles; none by default. */
    profileFields: profileFields.fields,
    /** True if front ends on any port of this machine may call the service, such as Vite's 5173. */
    acceptsLoopbackOrigins: !isProduction && isOnThisMachine(env),
    /** True if anything is served under /dev. */
    devTools: hasDevTools(env),
    /** Warnings for the log at the start. */
    warnings: settingsToWarnOf(env),
  });
}

/**
 * The parts with embedded forms for a single process: SQLite migrates without a lock, and a start removes drafts of
 * files.
 */
const sharedByProcesses = ['DATABASE_URL', 'REDIS_URL', 'S3_ENDPOINT'] as const satisfies (keyof typeof variables)[];

/** Settings that contradict each other. */
function contradictions(env: Environment): string[] {
  const { DATABASE_URL: database, DATABASE_REPLICA_URLS: replicas } = env;
  const { REGISTRATION: registration = 'open', REGISTRATION_DOMAINS: listed = '' } = env;
  const hasDomains = /[^\s,]/.test(listed);
  const { REDIS_SENTINEL: sentinel, REDIS_URL: redis, WEB_CONCURRENCY: processes = '1' } = env;
  const { S3_UPLOAD_ENDPOINT: uploadEndpoint, S3_ENDPOINT: endpoint } = env;
  const missing = Number(processes) > 1 ? sharedByProcesses.filter((name) => env[name] === undefined) : [];
  const configured = isOnDisk(env) ? s3.filter((name) => env[name] !== undefined) : [];
  return [
    ...configured.map((name) => `${name} must not be set with UPLOADS=disk: files are either there or in DATA_DIR`),
    ...(isOnDisk(env) && env['NODE_ENV'] === 'production' && env['DATA_DIR'] === undefined
      ? ['DATA_DIR is missing: with UPLOADS=disk the files of users are there, so it must outlive a release']
      : []),
    ...missing.map((name) => `WEB_CONCURRENCY requires ${name}: the embedded part supports one process`),
    ...(replicas && !database ? ['DATABASE_URL is missing: DATABASE_REPLICA_URLS are copies of it'] : []),
    ...(uploadEndpoint && !endpoint
      ? ['S3_ENDPOINT is missing: S3_UPLOAD_ENDPOINT is another name of that storage']
      : []),
    ...(sentinel && !redis ? ['REDIS_URL is missing: REDIS_SENTINEL takes user, password and database from it'] : []),
    ...(sentinel && redis && redisUrl.safeParse(redis).data?.cluster
      ? ['REDIS_SENTINEL requires a single host in REDIS_URL: several are a Cluster']
      : []),
    ...(registration === 'domains' && !hasDomains
      ? ['REGISTRATION_DOMAINS is missing: REGISTRATION=domains requires it']
      : []),
    ...(registration !== 'domains' && hasDomains
      ? [`REGISTRATION_DOMAINS requires REGISTRATION=domains, but REGISTRATION is ${registration}`]
      : []),
    ...(env['SCAN_DOWN'] && !env['SCAN_URL'] ? ['SCAN_URL is missing: SCAN_DOWN applies only to a scanner'] : []),
    ...termsProblems(env),
  ];
}

function assemble(env: z.output<typeof schema>) {
  const isProduction = env.NODE_ENV === 'production';
  const appUrl = env.APP_URL ?? `http://localhost:${env.PORT}`;
  const ownUrls = env.APP_URL ? [appUrl] : [appUrl, `http://127.0.0.1:${env.PORT}`, `http://[::1]:${env.PORT}`];
  return {
    production: isProduction,
    port: env.PORT,
    host: env.HOST ?? (isProduction ? '0.0.0.0' : '127.0.0.1'),
    /** The public base URL, without a trailing slash. */
    appUrl,
    /** Secure cookies: interface.md section 5.2, and whenever users come over https. */
    secureCookies: isProduction || appUrl.startsWith('https:'),
    /** Every base URL of the service, APP_URL first; if that is unset, every name of this machine. */
    ownUrls,
    /** The origins of browsers that may call the service: its own, and further front ends. */
    origins: new Set([...ownUrls.map((url) => new URL(url).origin), ...env.ALLOWED_ORIGINS]),
    apiHost: env.API_HOST ?? env.S3_UPLOAD_ENDPOINT ?? new URL(appUrl).host,
    /**
     * The current one is first. Undefined outside production: then a secret is generated once and stored in dataDir.
     */
    appSecrets: env.APP_SECRET,
    databaseUrl: env.DATABASE_URL,
    /** Copies of the database, which may be slightly stale. */
    databaseReplicaUrls: env.DATABASE_REPLICA_URLS,
    /**
     * One server, or the first node of a Redis Cluster. With Sentinels only its user, password, TLS and database are
     * used.
     */
    redisUrl: env.REDIS_URL?.url,
    redisCluster: env.REDIS_URL?.cluster,
    redisSentinel: env.REDIS_SENTINEL,
    smtpUrl: env.SMTP_URL,
    mailFrom: senderOf(env),
    s3: s3Of(env),
    uploads: {
      /** True if this instance, the only one, keeps the files in dataDir: UPLOADS=disk. */
      areOnDisk: env.UPLOADS === 'disk',
      types: env.UPLOAD_TYPES.filter(isUploadType),
      maxBytes: env.UPLOAD_MAX_BYTES,
      /** The quota of one user in bytes. */
      quota: env.UPLOAD_QUOTA,
      imageSizes: env.IMAGE_SIZES,
    },
    /** Looks at files before they are given out. Undefined without SCAN_URL: files are given out at once. */
    scan: env.SCAN_URL === undefined ? undefined : { url: env.SCAN_URL, allowsWhenDown: env.SCAN_DOWN === 'allow' },
    webhooks: {
      /** The maximum number of deliveries in flight to one webhook. */
      concurrency: env.WEBHOOK_CONCURRENCY,
      /** Networks that are reachable although they are not public. */
      allowed: env.WEBHOOK_ALLOW,
    },
    /** How long account activity is kept. */
    activityDays: env.ACTIVITY_DAYS,
    /** How long a deleted account can be restored. */
    deletionGraceDays: env.DELETION_GRACE_DAYS,
    /** Who may register; `domains` are in lower case, with `*.example.com` for subdomains. */
    registration: { mode: env.REGISTRATION, domains: env.REGISTRATION_DOMAINS },
    /** Whether a code by mail logs in. */
    emailCodes: env.EMAIL_CODES === 'on',
    /** Whether administrators may act for users; `quiet`: without a mail to the user. */
    impersonation: env.IMPERSONATION,
    /** The fields and callers of the public reads of users. */
    publicUsers: env.PUBLIC_USERS,
    /** True if avatars must be uploads of this service. */
    ownAvatars: env.AVATARS === 'own',
    cookieDomain: env.COOKIE_DOMAIN,
    /** The number of proxies in front that append to X-Forwarded-For. */
    trustedProxies: env.TRUST_PROXY,
    /** Other services that may call `service.*`; each may have several tokens. */
    serviceTokens: env.SERVICE_TOKENS,
    /** Certificate authorities in PEM, trusted in addition to Node's own. */
    caFile: env.CA_FILE,
    /** The number of processes that serve requests, and the cores that hashes and images of each may occupy. */
    processes: env.WEB_CONCURRENCY,
    cores: Math.max(1, Math.floor(availableParallelism() / env.WEB_CONCURRENCY)),
    dataDir: env.DATA_DIR,
    /** True if the account pages are served; false for a team's own front end at appUrl. */
    pages: env.PAGES === 'on',
    brand: brandOf(env),
    /** Of the times in mails: an IANA name. */
    timeZone: env.TIME_ZONE,
    /** The name of the service in mails and authenticators. */
    siteName: env.APP_NAME ?? new URL(appUrl).host,
    /** A folder with texts that replace the built-in ones. */
    textsDir: env.TEXTS_DIR,
    /** The version of the terms that new users accept. Undefined without terms. */
    termsVersion: termsVersionOf(env),
    logLevel: env.LOG_LEVEL,
    /** Undefined: no metrics. */
    metricsPort: env.METRICS_PORT,
    metricsHost: env.METRICS_HOST,
    traces: tracesOf(env),
    passwordIterations: env.PASSWORD_ITERATIONS,
    /** The lowest score of zxcvbn that a new password must have; 0: none. */
    passwordStrength: env.PASSWORD_STRENGTH,
    /** Hashes of passwords that are refused. */
    breachedPasswordsFile: env.BREACHED_PASSWORDS_FILE,
    rates: ratesOf(env),
    /** When calls without a session need a proof of work: see server/challenge. */
    challenge: env.CHALLENGE,
  };
}

/** The sender of mails. A MAIL_FROM without a name gets the brand's name. */
function senderOf({ MAIL_FROM, APP_NAME }: z.output<typeof schema>): { name: string; address: string } {
  const [, name = '', address = MAIL_FROM ?? 'no-reply@localhost'] = /^([^<]*)<([^>]+)>$/.exec(MAIL_FROM ?? '') ?? [];
  const unquoted = name.trim().replace(/^"(.*)"$/, (_, quoted: string) => quoted.replace(/\\(.)/g, '$1'));
  return { name: unquoted || (APP_NAME ?? (MAIL_FROM === undefined ? 'Account service' : '')), address };
}

/** Undefined outside production without S3: files are stored in dataDir and served by the service. */
function s3Of(env: z.output<typeof schema>) {
  const { S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY: accessKey, S3_SECRET_KEY: secretKey } = env;
  const sessionToken = env.S3_SESSION_TOKEN;
  if (!endpoint || !bucket || !accessKey || !secretKey) return undefined;
  const uploadEndpoint = env.S3_UPLOAD_ENDPOINT ?? endpoint;
  const publicUrl = env.S3_PUBLIC_URL ?? `${uploadEndpoint}/${bucket}`;
  return { endpoint, uploadEndpoint, region: env.S3_REGION, bucket, accessKey, secretKey, sessionToken, publicUrl };
}

/** The threads of libuv: for all concurrent hashes, of other products too, and eight for files and host names. */
export const threadsFor = (cores: number): number => Math.max(16, cores + 1 + Math.ceil(cores / 2) + 8);

function loadEnvFile(path: string): void {
  try {
    process.loadEnvFile(path);
  } catch (error) {
    throw new ConfigError([`${path} cannot be read: ${(error as Error).message}`]);
  }
}

/**
 * The configuration of this process; a file `.env` in the working directory adds variables that the environment leaves
 * unset.
 */
export function loadConfig(): Config {
  if (existsSync('.env')) loadEnvFile('.env');
  const config = parseConfig(process.env);
  // libuv reads this when its first thread starts. With its default of four, a short file access would wait behind
  // password hashes.
  process.env['UV_THREADPOOL_SIZE'] ??= String(threadsFor(config.cores));
  return config;
}
