import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { isUploadType } from '../media-types.ts';
import { brandOf, brandVariables, termsProblems, termsVersionOf } from './brand.ts';
import { hasDevTools, isOnThisMachine } from './dev-tools.ts';
import { identityProvidersIn, identityProviderVariables } from './identity-providers.ts';
import { insecureSettings, settingsToWarnOf } from './insecure-settings.ts';
import { limitVariables, ratesOf } from './limits.ts';
import { redisSentinel, redisUrl } from './redis.ts';
import { tracesOf, traceVariables } from './traces.ts';
import {
  addressOf,
  baseAddress,
  databaseAddress,
  databaseAddresses,
  domains,
  type Environment,
  origins,
  secrets,
  serviceTokens,
  uploadTypes,
  whole,
} from './values.ts';

export type { RedisNode, RedisSentinel } from './redis.ts';
export { isServiceName, type Rate } from './values.ts';

/**
 * The environment, parsed once: the only place that reads it. `parseConfig` collects every problem and reports them
 * together; outside production each part that is not configured gets its embedded form (decisions.md, "Configuration"),
 * except mail and the identity provider: their embedded forms let a caller become any user, and need `hasDevTools`.
 */

/** minio would leave a path out, and a signature holds the path that the storage sees. */
const storageAddress = () =>
  baseAddress().refine((text) => (URL.parse(text)?.pathname ?? '/') === '/', 'must have no path');

/** Every variable, in the order of .env.example. */
const variables = {
  NODE_ENV: z.enum(['development', 'test', 'production']).default('development'),
  PORT: whole(1, 65535).default(3000),
  HOST: z.string().optional(),
  APP_URL: baseAddress().optional(),
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
  S3_ENDPOINT: storageAddress().optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket')
    .optional(),
  S3_ACCESS_KEY: z.string().optional(),
  S3_SECRET_KEY: z.string().optional(),
  S3_PUBLIC_URL: baseAddress().optional(),
  S3_UPLOAD_ENDPOINT: storageAddress().optional(),
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
  ...limitVariables,
  // At least as long as a mail about a new device can be answered.
  ACTIVITY_DAYS: whole(7, 36_500).default(180),
  DELETION_GRACE_DAYS: whole(1, 3650).default(14),
  REGISTRATION: z.enum(['open', 'domains', 'invited', 'closed']).default('open'),
  REGISTRATION_DOMAINS: domains,
  PUBLIC_USERS: z.enum(['full', 'without-email', 'session', 'off']).default('full'),
  AVATARS: z.enum(['any', 'own']).default('any'),
  UPLOAD_TYPES: uploadTypes,
  // At most what S3 takes in one PUT.
  UPLOAD_MAX_BYTES: whole(1, 5 * 1024 ** 3).default(50 * 1024 ** 2),
  UPLOAD_QUOTA: whole(1).default(1024 ** 3),
};

export const variableNames = Object.keys(variables);

/** The variables that production requires, because no embedded part replaces them there. */
const required = [
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
 * The variables that a service without development tools requires: the embedded mailbox shows every token to every
 * caller.
 */
const requiredWithoutDevTools = ['SMTP_URL', 'MAIL_FROM'] as const satisfies (keyof typeof variables)[];

/** Variables that belong together: outside production all of them or none. */
const s3 = ['S3_ENDPOINT', 'S3_BUCKET', 'S3_ACCESS_KEY', 'S3_SECRET_KEY'] as const satisfies (keyof typeof variables)[];

const schema = z.object(variables);

/** The environment as given cannot be used; the message names every variable that is missing or malformed. */
export class ConfigError extends Error {
  constructor(problems: string[]) {
    super(`The configuration cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

export type Config = ReturnType<typeof parseConfig>;

/** Parses an environment; an empty variable counts as unset. Throws ConfigError with every problem in it. */
export function parseConfig(environment: Environment) {
  const env = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(env);
  const isMissing = (name: string) => env[name] === undefined;
  const problems = parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`);
  const isProduction = env['NODE_ENV'] === 'production';
  if (parsed.success && parsed.data.METRICS_PORT === parsed.data.PORT)
    problems.push('METRICS_PORT must not be that of PORT');
  if (isProduction) {
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
      problems.push(...s3.filter(isMissing).map((name) => `${name} is missing: the others of S3 need it`));
    }
  }
  problems.push(...contradictions(env));
  const identityProviders = identityProvidersIn(env, { devTools: hasDevTools(env) });
  problems.push(...identityProviders.problems);
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({
    ...assemble(parsed.data),
    /** Our clients at the configured identity providers, by the provider's name. */
    identityProviders: identityProviders.clients,
    embeddedProvider: identityProviders.embedded,
    /** Whether front ends on any port of this machine may call us too, such as Vite's 5173. */
    acceptsLoopbackOrigins: !isProduction && isOnThisMachine(env),
    /** Whether there is anything under /dev. */
    devTools: hasDevTools(env),
    /** Warnings, for the log at the start. */
    warnings: settingsToWarnOf(env),
  });
}

/** The parts whose embedded forms are for one process: SQLite migrates without a lock, and a start removes drafts of files. */
const sharedByProcesses = ['DATABASE_URL', 'REDIS_URL', 'S3_ENDPOINT'] as const satisfies (keyof typeof variables)[];

/** Settings that do not go together. */
function contradictions(env: Environment): string[] {
  const { DATABASE_URL: database, DATABASE_REPLICA_URLS: replicas } = env;
  const { REGISTRATION: registration = 'open', REGISTRATION_DOMAINS: listed = '' } = env;
  const hasDomains = /[^\s,]/.test(listed);
  const { REDIS_SENTINEL: sentinel, REDIS_URL: redis, WEB_CONCURRENCY: processes = '1' } = env;
  const { S3_UPLOAD_ENDPOINT: uploadEndpoint, S3_ENDPOINT: endpoint } = env;
  const missing = Number(processes) > 1 ? sharedByProcesses.filter((name) => env[name] === undefined) : [];
  return [
    ...missing.map((name) => `WEB_CONCURRENCY needs ${name}: the embedded part is for one process`),
    ...(replicas && !database ? ['DATABASE_URL is missing: DATABASE_REPLICA_URLS are copies of it'] : []),
    ...(uploadEndpoint && !endpoint
      ? ['S3_ENDPOINT is missing: S3_UPLOAD_ENDPOINT is another name of that storage']
      : []),
    ...(sentinel && !redis ? ['REDIS_URL is missing: it has user, password and database for REDIS_SENTINEL'] : []),
    ...(sentinel && redis && redisUrl.safeParse(redis).data?.cluster
      ? ['REDIS_SENTINEL is for one host in REDIS_URL: several are a Cluster']
      : []),
    ...(registration === 'domains' && !hasDomains
      ? ['REGISTRATION_DOMAINS is missing: REGISTRATION=domains needs it']
      : []),
    ...(registration !== 'domains' && hasDomains
      ? [`REGISTRATION_DOMAINS is for REGISTRATION=domains, and REGISTRATION is ${registration}`]
      : []),
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
    /** Public base address, without a slash at the end. */
    appUrl,
    /** Every base address that is ours, APP_URL first; while that is not set, every name of this machine. */
    ownUrls,
    /** Origins whose browsers may call us: our own, and the further front ends. */
    origins: new Set([...ownUrls.map((url) => new URL(url).origin), ...env.ALLOWED_ORIGINS]),
    apiHost: env.API_HOST ?? env.S3_UPLOAD_ENDPOINT ?? new URL(appUrl).host,
    /** The current one first. Undefined outside production: then a secret is made once and kept in dataDir. */
    appSecrets: env.APP_SECRET,
    databaseUrl: env.DATABASE_URL,
    /** Copies of the database, which may be a little behind. */
    databaseReplicaUrls: env.DATABASE_REPLICA_URLS,
    /** One server, or the first node of a Redis Cluster; with Sentinels only its user, password, TLS and database count. */
    redisUrl: env.REDIS_URL?.url,
    redisCluster: env.REDIS_URL?.cluster,
    redisSentinel: env.REDIS_SENTINEL,
    smtpUrl: env.SMTP_URL,
    mailFrom: senderOf(env),
    s3: s3Of(env),
    uploads: {
      types: env.UPLOAD_TYPES.filter(isUploadType),
      maxBytes: env.UPLOAD_MAX_BYTES,
      /** Bytes that one user may keep. */
      quota: env.UPLOAD_QUOTA,
    },
    /** How long the activity of accounts is kept. */
    activityDays: env.ACTIVITY_DAYS,
    /** How long a deleted account can be restored. */
    deletionGraceDays: env.DELETION_GRACE_DAYS,
    /** Who may make an account; `domains` has lower case names, and `*.example.com` for those below one. */
    registration: { mode: env.REGISTRATION, domains: env.REGISTRATION_DOMAINS },
    /** What the public reads of users answer, and to whom. */
    publicUsers: env.PUBLIC_USERS,
    /** Whether avatars are uploads of this service only. */
    ownAvatars: env.AVATARS === 'own',
    cookieDomain: env.COOKIE_DOMAIN,
    /** How many proxies stand in front and append to X-Forwarded-For. */
    trustedProxies: env.TRUST_PROXY,
    /** Other services that may call `service.*`; one may have several tokens. */
    serviceTokens: env.SERVICE_TOKENS,
    /** Certificate authorities to trust beside Node's own, in PEM. */
    caFile: env.CA_FILE,
    /** How many processes answer requests, and the cores that hashes and images of each may keep busy. */
    processes: env.WEB_CONCURRENCY,
    cores: Math.max(1, Math.floor(availableParallelism() / env.WEB_CONCURRENCY)),
    dataDir: env.DATA_DIR,
    /** Whether the account pages are served; a team's own front end at appUrl takes their place otherwise. */
    pages: env.PAGES === 'on',
    brand: brandOf(env),
    /** A folder with texts in place of ours. */
    textsDir: env.TEXTS_DIR,
    /** The version of the terms that new users accept. Undefined: none. */
    termsVersion: termsVersionOf(env),
    logLevel: env.LOG_LEVEL,
    /** Undefined: no metrics. */
    metricsPort: env.METRICS_PORT,
    metricsHost: env.METRICS_HOST,
    traces: tracesOf(env),
    passwordIterations: env.PASSWORD_ITERATIONS,
    rates: ratesOf(env),
  };
}

/** The sender of mails. An address of MAIL_FROM without a name has that of the brand. */
function senderOf({ MAIL_FROM, APP_NAME }: z.output<typeof schema>): { name: string; address: string } {
  const [, name = '', address = MAIL_FROM ?? 'no-reply@localhost'] = /^([^<]*)<([^>]+)>$/.exec(MAIL_FROM ?? '') ?? [];
  const given = name.trim().replace(/^"(.*)"$/, (_, quoted: string) => quoted.replace(/\\(.)/g, '$1'));
  return { name: given || (APP_NAME ?? (MAIL_FROM === undefined ? 'Account service' : '')), address };
}

/** Undefined outside production: then files are kept in dataDir and served by the service itself. */
function s3Of(env: z.output<typeof schema>) {
  const { S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY: accessKey, S3_SECRET_KEY: secretKey } = env;
  if (!endpoint || !bucket || !accessKey || !secretKey) return undefined;
  const uploadEndpoint = env.S3_UPLOAD_ENDPOINT ?? endpoint;
  const publicUrl = env.S3_PUBLIC_URL ?? `${uploadEndpoint}/${bucket}`;
  return { endpoint, uploadEndpoint, region: env.S3_REGION, bucket, accessKey, secretKey, publicUrl };
}

/** The configuration of this process; a file `.env` in the working directory adds what the environment leaves unset. */
export function loadConfig(): Config {
  if (existsSync('.env')) process.loadEnvFile('.env');
  // libuv reads this when its first thread starts. With its four, a short file access would wait behind password hashes.
  process.env['UV_THREADPOOL_SIZE'] ??= '16';
  return parseConfig(process.env);
}
