import { z } from 'zod';
import { isInTheClear } from '../shared/loopback.ts';
import { IMPERSONATION, ownMethods, ownOrigins, type ProviderName } from '../shared/method-names.ts';
import type { Environment } from './values.ts';

/**
 * The environment of identity providers: `IDP_<NAME>_CLIENT_ID`, `IDP_<NAME>_CLIENT_SECRET` and so on. Without
 * `<NAME>_` they configure the one of IDP_NAME. Unknown providers also need an issuer.
 */

type Kind = 'oidc' | 'github' | 'discord' | 'facebook';

interface Preset {
  /** OpenID Connect, or plain OAuth 2.0 with the provider's own API. */
  kind: Kind;
  issuer: string;
  scopes: string;
  /** True if it documents a forced login and its time (`prompt`, `auth_time`). */
  provesLogin: boolean;
}

const DEFAULT_SCOPES = 'openid email profile';
const openIdConnect = { kind: 'oidc', scopes: DEFAULT_SCOPES, provesLogin: true } as const;
const plainOauth = { provesLogin: false } as const;

const presets: Record<string, Preset> = {
  /** Does not support `prompt=login`. */
  google: { ...openIdConnect, issuer: 'https://accounts.google.com', provesLogin: false },
  microsoft: { ...openIdConnect, issuer: 'https://login.microsoftonline.com/common/v2.0' },
  gitlab: { ...openIdConnect, issuer: 'https://gitlab.com' },
  /** With its own issuer, a GitHub Enterprise Server. */
  github: { ...plainOauth, kind: 'github', issuer: 'https://github.com', scopes: 'read:user user:email' },
  discord: { ...plainOauth, kind: 'discord', issuer: 'https://discord.com', scopes: 'identify email' },
  facebook: { ...plainOauth, kind: 'facebook', issuer: 'https://www.facebook.com', scopes: 'public_profile email' },
};

const presetOf = (name: string): Preset | undefined => (Object.hasOwn(presets, name) ? presets[name] : undefined);

/** Normalized names of providers, and the path segments in use below /auth. */
export const takenNames: readonly string[] = [
  ...ownMethods,
  ...ownOrigins,
  IMPERSONATION,
  'register',
  'verify-email',
  'resend-verification',
  'login',
  'logout',
  'logout-all',
  'not-me',
  'second-factor',
  'reauthenticate',
  'confirm-email',
  'undo-email-change',
  'restore',
  'forgot-password',
  'reset-password',
];

const DEFAULT_NAME = 'idp' as ProviderName;

/** OpenID Connect Discovery section 3; plain http only on this machine. */
function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.search || url.hash || url.username || url.password) return false;
  return ['http:', 'https:'].includes(url.protocol) && !isInTheClear(text);
}

/** RFC 6749 section 3.3. */
const scopeToken = '[\\x21\\x23-\\x5b\\x5d-\\x7e]+';

/** The variables of a provider by the suffix of their name, with the form of their values. */
const fields = {
  ISSUER: z
    .string()
    .refine(isIssuer, 'must be an address that starts with https:// (http:// on this machine only)')
    .optional(),
  CLIENT_ID: z.string().optional(),
  CLIENT_SECRET: z.string().optional(),
  SCOPES: z
    .string()
    .regex(new RegExp(`^${scopeToken}(?: ${scopeToken})*$`), 'must be scopes with one space between them')
    .optional(),
  TRUSTED_MFA: z.enum(['on', 'off']).optional(),
};
type Field = keyof typeof fields;

const variablesOf = <Prefix extends string>(prefix: Prefix) =>
  Object.fromEntries(Object.entries(fields).map(([field, schema]) => [`${prefix}_${field}`, schema])) as {
    [F in Field as `${Prefix}_${F}`]: (typeof fields)[F];
  };

export const providerName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/, 'must be at most 32 of a-z, 0-9, - and _')
  .refine((name) => !takenNames.includes(name), 'must be another name: this one is taken')
  .transform((name) => name as ProviderName);

/** The variables with fixed names: those of the provider of IDP_NAME. */
export const identityProviderVariables = { IDP_NAME: providerName.optional(), ...variablesOf('IDP') };

/** The fixed variables that the embedded provider uses too. */
const ofEmbedded = ['IDP_NAME', 'IDP_SCOPES', 'IDP_TRUSTED_MFA'];

/** A configured provider: its name, which is checked with the other values, and the prefix of its variables. */
interface Entry {
  name: ProviderName;
  prefix: string;
}

/** This service as a client of an identity provider. */
export interface IdentityProviderClient {
  kind: Kind;
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Separated by spaces. */
  scopes: string;
  /** True if it can force a new login and state its time. */
  provesLogin: boolean;
  /** True if a login there needs no second factor here, because the provider requires one. */
  isTrustedForMfa: boolean;
  /** Replaces the issuer's origin in calls; only the embedded provider has one. */
  address?: string;
}

interface IdentityProviders {
  /** Complete only without problems. The provider of IDP_NAME is first, the others are sorted by name. */
  clients: ReadonlyMap<ProviderName, IdentityProviderClient>;
  /** The embedded provider, if development tools are on and no other provider is configured. */
  embedded: { name: ProviderName; scopes: string; isTrustedForMfa: boolean } | undefined;
  /** Problems, except those of the fixed variables' values. */
  problems: string[];
}

/** The callback path of a provider, below one of our own URLs. */
export const callbackPath = (provider: string): string => `/auth/${provider}/callback`;

/** Reads the providers from an environment without empty variables. */
export function identityProvidersIn(env: Environment, { devTools }: { devTools: boolean }): IdentityProviders {
  const named = namedEntries(env);
  const fixed = fixedEntry(env, { hasEmbedded: devTools && named.length === 0 });
  const entries = [...fixed, ...named];
  const { IDP_SCOPES: scopes = DEFAULT_SCOPES } = env;
  const isTrustedForMfa = env['IDP_TRUSTED_MFA'] === 'on';
  return {
    clients: new Map(
      entries.flatMap((entry) => {
        const client = clientOf(entry, env);
        return client ? [[entry.name, client]] : [];
      }),
    ),
    embedded: devTools && entries.length === 0 ? { name: fixedName(env), scopes, isTrustedForMfa } : undefined,
    problems: [
      ...entries.flatMap((entry) => incompleteIn(entry, env)),
      ...named.flatMap((entry) => malformedIn(entry, env)),
      ...named
        .filter((entry) => fixed.some((other) => other.name === entry.name))
        .map(({ name, prefix }) => `IDP_NAME must be another name: ${prefix}_… configures ${name} too`),
    ],
  };
}

const namedVariable = new RegExp(`^IDP_(.+)_(?:${Object.keys(fields).join('|')})$`);

function namedEntries(env: Environment): Entry[] {
  const names = new Set(Object.keys(env).flatMap((variable) => namedVariable.exec(variable)?.[1] ?? []));
  return [...names].sort().map((name) => ({ name: name.toLowerCase() as ProviderName, prefix: `IDP_${name}` }));
}

const fixedName = (env: Environment) => (env['IDP_NAME'] as ProviderName | undefined) ?? DEFAULT_NAME;

/** The provider of the fixed variables, if any. A name alone is that of the embedded provider. */
function fixedEntry(env: Environment, { hasEmbedded }: { hasEmbedded: boolean }): Entry[] {
  const present = Object.keys(identityProviderVariables).filter((variable) => env[variable] !== undefined);
  if (present.every((variable) => hasEmbedded && ofEmbedded.includes(variable))) return [];
  return [{ name: fixedName(env), prefix: 'IDP' }];
}

const settingOf = ({ prefix }: Entry, env: Environment, field: Field) => env[`${prefix}_${field}`];

const credentials = ['CLIENT_ID', 'CLIENT_SECRET'] as const satisfies Field[];

const kindOf = (name: string): Kind => presetOf(name)?.kind ?? 'oidc';

/** The variables that are missing beside those that are set. */
function incompleteIn(entry: Entry, env: Environment): string[] {
  const { name, prefix } = entry;
  const problems = credentials
    .filter((field) => settingOf(entry, env, field) === undefined)
    .map((field) => `${prefix}_${field} is missing: the identity provider needs it`);
  if (settingOf(entry, env, 'ISSUER') === undefined && !presetOf(name)) {
    problems.push(`${prefix}_ISSUER is missing: only ${Object.keys(presets).join(', ')} are known by their name`);
  }
  const scopes = settingOf(entry, env, 'SCOPES');
  if (kindOf(name) === 'oidc' && scopes && !scopes.split(' ').includes('openid')) {
    problems.push(`${prefix}_SCOPES must have openid among them`);
  }
  return problems;
}

/** The variables of a named provider with a malformed name or value. */
function malformedIn({ name, prefix }: Entry, env: Environment): string[] {
  const values = z.object(variablesOf(prefix)).safeParse(env).error?.issues ?? [];
  const names = providerName.safeParse(name).error?.issues ?? [];
  return [
    ...values.map((issue) => `${issue.path.join('.')} ${issue.message}`),
    ...names.map((issue) => `${prefix}_… has a name that ${issue.message}`),
    ...(prefix === prefix.toUpperCase() ? [] : [`${prefix}_… must be written in upper case`]),
  ];
}

/** Undefined if a variable is missing. */
function clientOf(entry: Entry, env: Environment): IdentityProviderClient | undefined {
  const preset = presetOf(entry.name);
  const issuer = settingOf(entry, env, 'ISSUER') ?? preset?.issuer;
  const clientId = settingOf(entry, env, 'CLIENT_ID');
  const clientSecret = settingOf(entry, env, 'CLIENT_SECRET');
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return undefined;
  const { kind, provesLogin } = preset ?? openIdConnect;
  const scopes = settingOf(entry, env, 'SCOPES') ?? (preset ?? openIdConnect).scopes;
  const isTrustedForMfa = settingOf(entry, env, 'TRUSTED_MFA') === 'on';
  return { kind, issuer, clientId, clientSecret, scopes, provesLogin, isTrustedForMfa };
}
