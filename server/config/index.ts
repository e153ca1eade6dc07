import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { isUploadType } from '../media-types.ts';
import { hasDevTools, isOnThisMachine } from './dev-tools.ts';
import { fixedVariables, identityProvidersIn } from './identity-providers.ts';
import { insecureSettings, settingsToWarnOf } from './insecure-settings.ts';
import { redisSentinel, redisUrl } from './redis.ts';
import {
  addressOf,
  baseAddress,
  databaseAddress,
  databaseAddresses,
  type Environment,
  optionalRate,
  origins,
  rate,
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
  // minio would leave a path out.
  S3_ENDPOINT: baseAddress()
    .refine((text) => (URL.parse(text)?.pathname ?? '/') === '/', 'must have no path')
    .optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket')
    .optional(),
  S3_ACCESS_KEY: z.string().optional(),
  S3_SECRET_KEY: z.string().optional(),
  S3_PUBLIC_URL: baseAddress().optional(),
  ...fixedVariables,
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
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('info'),
  METRICS_PORT: whole(1, 65535).optional(),
  METRICS_HOST: z.string().default('127.0.0.1'),
  // OpenTelemetry's SDK reads these itself; here they are checked.
  OTEL_EXPORTER_OTLP_ENDPOINT: baseAddress().optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.enum(['http/protobuf', 'http/json']).default('http/protobuf'),
  OTEL_EXPORTER_OTLP_HEADERS: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .optional(),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^(?:0(?:\.\d+)?|1(?:\.0+)?)$/, 'must be between 0 and 1')
    .optional(),
  PASSWORD_ITERATIONS: whole(1, 10_000_000).default(100_000),
  LIMIT_LOGIN: rate(5, 15 * 60),
  LIMIT_REGISTER: rate(100, 15 * 60),
  LIMIT_MAIL: rate(10, 60 * 60),
  LIMIT_INBOX: rate(30, 60 * 60),
  LIMIT_MAIL_REQUEST: rate(100, 60 * 60),
  LIMIT_TOKEN: rate(50, 15 * 60),
  LIMIT_UPLOAD: rate(120, 60 * 60),
  LIMIT_IDP_START: rate(100, 15 * 60),
  LIMIT_READ: optionalRate,
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
  const { REDIS_SENTINEL: sentinel, REDIS_URL: redis, WEB_CONCURRENCY: processes = '1' } = env;
  const missing = Number(processes) > 1 ? sharedByProcesses.filter((name) => env[name] === undefined) : [];
  return [
    ...missing.map((name) => `WEB_CONCURRENCY needs ${name}: the embedded part is for one process`),
    ...(replicas && !database ? ['DATABASE_URL is missing: DATABASE_REPLICA_URLS are copies of it'] : []),
    ...(sentinel && !redis ? ['REDIS_URL is missing: it has user, password and database for REDIS_SENTINEL'] : []),
    ...(sentinel && redis && redisUrl.safeParse(redis).data?.cluster
      ? ['REDIS_SENTINEL is for one host in REDIS_URL: several are a Cluster']
      : []),
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
    apiHost: env.API_HOST ?? new URL(appUrl).host,
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
    mailFrom: env.MAIL_FROM ?? 'Account service <no-reply@localhost>',
    s3: s3Of(env),
    uploads: {
      types: env.UPLOAD_TYPES.filter(isUploadType),
      maxBytes: env.UPLOAD_MAX_BYTES,
      /** Bytes that one user may keep. */
      quota: env.UPLOAD_QUOTA,
    },
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
    logLevel: env.LOG_LEVEL,
    /** Undefined: no metrics. */
    metricsPort: env.METRICS_PORT,
    metricsHost: env.METRICS_HOST,
    /** Undefined: no traces. */
    traces: env.OTEL_EXPORTER_OTLP_ENDPOINT === undefined ? undefined : { protocol: env.OTEL_EXPORTER_OTLP_PROTOCOL },
    passwordIterations: env.PASSWORD_ITERATIONS,
    rates: {
      login: env.LIMIT_LOGIN,
      register: env.LIMIT_REGISTER,
      mail: env.LIMIT_MAIL,
      inbox: env.LIMIT_INBOX,
      mailRequest: env.LIMIT_MAIL_REQUEST,
      token: env.LIMIT_TOKEN,
      upload: env.LIMIT_UPLOAD,
      idpStart: env.LIMIT_IDP_START,
      read: env.LIMIT_READ,
    },
  };
}

/** Undefined outside production: then files are kept in dataDir and served by the service itself. */
function s3Of(env: z.output<typeof schema>) {
  const { S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY: accessKey, S3_SECRET_KEY: secretKey } = env;
  if (!endpoint || !bucket || !accessKey || !secretKey) return undefined;
  const publicUrl = env.S3_PUBLIC_URL ?? `${endpoint}/${bucket}`;
  return { endpoint, region: env.S3_REGION, bucket, accessKey, secretKey, publicUrl };
}

/** The configuration of this process; a file `.env` in the working directory adds what the environment leaves unset. */
export function loadConfig(): Config {
  if (existsSync('.env')) process.loadEnvFile('.env');
  // libuv reads this when its first thread starts. With its four, a short file access would wait behind password hashes.
  process.env['UV_THREADPOOL_SIZE'] ??= '16';
  return parseConfig(process.env);
}
