import { deflateRawSync } from 'node:zlib';
import { getPublicSuffix } from 'tldts';
import { isInTheClear, isLoopback } from '../shared/loopback.ts';
import { areDevToolsExposed, isOnThisMachine } from './dev-tools.ts';
import { type Environment, secretsIn } from './values.ts';

/**
 * Well-formed settings that undo security. A rule returns the problem with its variable's value, or undefined; the
 * schema reports malformed values.
 */

type Rules = Record<string, (value: string, env: Environment) => string | undefined>;

/** interface.md section 5.6. */
const FEWEST_ITERATIONS = 100_000;
/** `openssl rand -hex 16`, 128 bits, was never below 28 in 200,000 samples. */
const LEAST_DEFLATED_BYTES = 24;

/** These prevent a start in production. */
const insecure: Rules = {
  APP_URL: (value) =>
    isInTheClear(value) ? 'must start with https://: passwords and cookies are sent there' : undefined,
  APP_HOME_URL: (value) => (isInTheClear(value) ? 'must start with https://: users are led there' : undefined),
  DEV_TOOLS: (value, { NODE_ENV }) =>
    value === 'on' && NODE_ENV === 'production' ? 'must not be on: it lets any caller become any user' : undefined,
  ALLOWED_ORIGINS: (value) =>
    value.split(',').some(isInTheClear)
      ? 'must be origins with https://: their pages can be changed on the way'
      : undefined,
  API_HOST: (value) => (matchesAnySite(value) ? 'must name a host: this lets pages send data anywhere' : undefined),
  APP_SECRET: (value) =>
    secretsIn(value).some(isGuessable) ? 'can be guessed: `openssl rand -base64 32` makes one that cannot' : undefined,
  SCAN_URL: (value) => (isInTheClear(value) ? 'must start with https://: files of users are sent there' : undefined),
  COOKIE_DOMAIN: cookieDomainProblem,
  REGISTRATION_DOMAINS: (value) => {
    const open = value.split(',').find((entry) => matchesAnySite(entry.trim()));
    return open && `must not have ${open.trim()}: everyone can have a domain below a public suffix`;
  },
  PASSWORD_ITERATIONS: (value) =>
    Number(value) < FEWEST_ITERATIONS ? `must be at least ${FEWEST_ITERATIONS}` : undefined,
};

/** These may be right, for example in a private network: logged as warnings. */
const doubtful: Rules = {
  REGISTRATION: (value, { PUBLIC_USERS }) =>
    value !== 'open' && PUBLIC_USERS === undefined
      ? `is ${value}, and PUBLIC_USERS is not set: everyone can read the names and addresses of those who are let in`
      : undefined,
  S3_ENDPOINT: (value, { S3_PUBLIC_URL, S3_UPLOAD_ENDPOINT }) => {
    if (!isInTheClear(value)) return undefined;
    const isPublic = S3_PUBLIC_URL === undefined && S3_UPLOAD_ENDPOINT === undefined;
    return `is plain http: uploads can be read and changed on the way${isPublic ? ', and our pages show no picture from there' : ''}`;
  },
  S3_UPLOAD_ENDPOINT: (value) =>
    isInTheClear(value) ? 'is plain http: browsers let no page over https send files there' : undefined,
  S3_PUBLIC_URL: (value) => (isInTheClear(value) ? 'is plain http: our pages show no picture from there' : undefined),
  SCAN_URL: (value) =>
    value.startsWith('clamd:') && !isLoopback(hostnameOf(value))
      ? 'is not encrypted: files can be read, and answers changed, on the way to clamd; keep it on this machine or in a private network'
      : undefined,
  SMTP_URL: (value) =>
    sendsInTheClear(value)
      ? 'may send mailed tokens unencrypted: smtps://, or ?requireTLS=true behind it, rules that out'
      : undefined,
};

const problemsIn = (rules: Rules) => (env: Environment) =>
  Object.entries(rules).flatMap(([name, rule]) => {
    const value = env[name];
    const problem = value === undefined ? undefined : rule(value, env);
    return problem === undefined ? [] : [`${name} ${problem}`];
  });

export const insecureSettings = problemsIn(insecure);
const doubtfulSettings = problemsIn(doubtful);

/** Warnings for a start that continues. On a developer's machine only exposed development tools cause one. */
export function settingsToWarnOf(env: Environment): string[] {
  if (env['NODE_ENV'] === 'production') return doubtfulSettings(env);
  const exposed = areDevToolsExposed(env)
    ? ['DEV_TOOLS are open: every caller of this service can read its mails and become any user at /dev']
    : [];
  return isOnThisMachine(env) ? exposed : [...exposed, ...insecureSettings(env), ...doubtfulSettings(env)];
}

const isPublicSuffix = (domain: string) => getPublicSuffix(domain, { allowPrivateDomains: true }) === domain;

/** CSP 3 section 2.3.1: a wildcard for every host, or for every host below a public suffix. */
function matchesAnySite(source: string): boolean {
  const host = source.replace(/^[a-z]+:\/\//i, '').replace(/[:/].*$/, '');
  return host === '*' || (host.startsWith('*.') && isPublicSuffix(host.slice(2).toLowerCase()));
}

/**
 * Browsers reject a cookie for a domain that does not cover its host; a cookie for a public suffix would be sent to
 * other sites.
 */
function cookieDomainProblem(value: string, { APP_URL = '' }: Environment): string | undefined {
  const domain = value.replace(/^\./, '').toLowerCase();
  const host = URL.parse(APP_URL)?.hostname;
  if (host === undefined || domain === host) return undefined;
  if (isPublicSuffix(domain)) return 'is a public suffix: name a domain of your own below it';
  return host.endsWith(`.${domain}`) ? undefined : `does not cover ${host}, the host of APP_URL`;
}

/** nodemailer uses STARTTLS if offered, and continues without it unless requireTLS is set. */
function sendsInTheClear(value: string): boolean {
  const url = URL.parse(value);
  if (url?.protocol !== 'smtp:' || url.searchParams.get('requireTLS') === 'true') return false;
  return !isLoopback(hostnameOf(value));
}

/** In a scheme that URL does not know, the host keeps its spelling. */
const hostnameOf = (address: string): string => (URL.parse(address)?.hostname ?? '').toLowerCase();

/** None consists of hexadecimal digits, so little of a random secret is removed. */
const placeholders =
  /change|replace|secret|password|placeholder|example|default|insert|please|super|your|here|this|application|service|random|string|secure|token|value|test|qwerty|asdfgh|zxcvbn/gi;

/**
 * An estimate that avoids false alarms. Without placeholder words the secret must not compress well, nor must the
 * differences of its characters, which are equal in `abcdef…`.
 */
function isGuessable(secret: string): boolean {
  const rest = Buffer.from(secret.replace(placeholders, ''));
  const steps = rest.map((byte, i) => byte - (rest[i - 1] ?? 0));
  return [rest, steps].some((bytes) => deflateRawSync(bytes).length < LEAST_DEFLATED_BYTES);
}
