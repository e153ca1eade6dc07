import { z } from 'zod';
import { isInTheClear } from '../loopback.ts';
import type { Environment } from './values.ts';

/**
 * The identity providers' part of the environment. Of each provider, `IDP_<NAME>_CLIENT_ID`, `IDP_<NAME>_CLIENT_SECRET`
 * and so on; the same variables without `<NAME>_` are those of the one that IDP_NAME names. A known provider needs client
 * id and secret only, any other also its issuer.
 */

type Kind = 'oidc' | 'github' | 'discord' | 'facebook';

interface Preset {
  /** OpenID Connect, or plain OAuth 2.0 with an API of the provider's own. */
  kind: Kind;
  issuer: string;
  scopes: string;
  /** Whether its documents have a way to make the user log in anew and to state when that was (`prompt`, `auth_time`). */
  provesLogin: boolean;
}

const DEFAULT_SCOPES = 'openid email profile';
const openIdConnect = { kind: 'oidc', scopes: DEFAULT_SCOPES, provesLogin: true } as const;
const plainOauth = { provesLogin: false } as const;

const presets: Record<string, Preset> = {
  /** Knows no `prompt=login`. */
  google: { ...openIdConnect, issuer: 'https://accounts.google.com', provesLogin: false },
  microsoft: { ...openIdConnect, issuer: 'https://login.microsoftonline.com/common/v2.0' },
  gitlab: { ...openIdConnect, issuer: 'https://gitlab.com' },
  /** With an issuer of its own a GitHub Enterprise Server. */
  github: { ...plainOauth, kind: 'github', issuer: 'https://github.com', scopes: 'read:user user:email' },
  discord: { ...plainOauth, kind: 'discord', issuer: 'https://discord.com', scopes: 'identify email' },
  facebook: { ...plainOauth, kind: 'facebook', issuer: 'https://www.facebook.com', scopes: 'public_profile email' },
};

const presetOf = (name: string): Preset | undefined => (Object.hasOwn(presets, name) ? presets[name] : undefined);

/** The path segments in use below /auth, and what password accounts and their login method are called (`provider`, `unproven`). */
export const takenNames = [
  'email',
  'password',
  'register',
  'verify-email',
  'resend-verification',
  'login',
  'logout',
  'logout-all',
  'not-me',
  'passkey',
  'totp',
  'second-factor',
  'reauthenticate',
  'confirm-email',
  'undo-email-change',
  'restore',
  'forgot-password',
  'reset-password',
];

const DEFAULT_NAME = 'idp';

/** OpenID Connect Discovery section 3; plain http only where no wire is crossed. */
function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.search || url.hash || url.username || url.password) return false;
  return ['http:', 'https:'].includes(url.protocol) && !isInTheClear(text);
}

/** RFC 6749 section 3.3. */
const scopeToken = '[\\x21\\x23-\\x5b\\x5d-\\x7e]+';

/** The variables of a provider, by the end of their name, and the form of their values. */
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
  .refine((name) => !takenNames.includes(name), 'must be another name: this one is taken below /auth');

/** The variables whose names are fixed: those of the provider that IDP_NAME names. */
export const identityProviderVariables = { IDP_NAME: providerName.optional(), ...variablesOf('IDP') };

/** The fixed variables that the embedded provider uses too. */
const ofEmbedded = ['IDP_NAME', 'IDP_SCOPES', 'IDP_TRUSTED_MFA'];

/** A configured provider: its name, and what the names of its variables begin with. */
interface Entry {
  name: string;
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
  /** Whether it can be asked to let the user log in anew, and to state when that was. */
  provesLogin: boolean;
  /** Whether a login there needs no second factor here: the provider asks for one itself. */
  isTrustedForMfa: boolean;
  /** Where calls to the issuer's origin go instead: only the embedded provider has such an address. */
  address?: string;
}

interface IdentityProviders {
  /** Complete only without problems. The one of IDP_NAME is first, the others are in the order of their names. */
  clients: ReadonlyMap<string, IdentityProviderClient>;
  /** The embedded provider, while development tools are on and no other provider is configured. */
  embedded: { name: string; scopes: string; isTrustedForMfa: boolean } | undefined;
  /** Those of the fixed variables' values excepted. */
  problems: string[];
}

/** The path to which a provider sends the browser back, below one of our own addresses. */
export const callbackPath = (provider: string): string => `/auth/${provider}/callback`;

/** Reads the providers from an environment without empty variables. */
export function identityProvidersIn(env: Environment, { devTools }: { devTools: boolean }): IdentityProviders {
  const named = namedEntries(env);
  const fixed = fixedEntry(env, { hasEmbedded: devTools && named.length === 0 });
  const entries = [...fixed, ...named];
  const { IDP_NAME: name = DEFAULT_NAME, IDP_SCOPES: scopes = DEFAULT_SCOPES } = env;
  const isTrustedForMfa = env['IDP_TRUSTED_MFA'] === 'on';
  return {
    clients: new Map(
      entries.flatMap((entry) => {
        const client = clientOf(entry, env);
        return client ? [[entry.name, client]] : [];
      }),
    ),
    embedded: devTools && entries.length === 0 ? { name, scopes, isTrustedForMfa } : undefined,
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
  return [...names].sort().map((name) => ({ name: name.toLowerCase(), prefix: `IDP_${name}` }));
}

/** None or one. A name alone names the embedded provider, where there is one. */
function fixedEntry(env: Environment, { hasEmbedded }: { hasEmbedded: boolean }): Entry[] {
  const present = Object.keys(identityProviderVariables).filter((variable) => env[variable] !== undefined);
  if (present.every((variable) => hasEmbedded && ofEmbedded.includes(variable))) return [];
  return [{ name: env['IDP_NAME'] ?? DEFAULT_NAME, prefix: 'IDP' }];
}

const given = ({ prefix }: Entry, env: Environment, field: Field) => env[`${prefix}_${field}`];

const credentials = ['CLIENT_ID', 'CLIENT_SECRET'] as const satisfies Field[];

const kindOf = (name: string): Kind => presetOf(name)?.kind ?? 'oidc';

/** The variables that are missing beside the given ones. */
function incompleteIn(entry: Entry, env: Environment): string[] {
  const { name, prefix } = entry;
  const problems = credentials
    .filter((field) => given(entry, env, field) === undefined)
    .map((field) => `${prefix}_${field} is missing: the identity provider needs it`);
  if (given(entry, env, 'ISSUER') === undefined && !presetOf(name)) {
    problems.push(`${prefix}_ISSUER is missing: only ${Object.keys(presets).join(', ')} are known by their name`);
  }
  const scopes = given(entry, env, 'SCOPES');
  if (kindOf(name) === 'oidc' && scopes && !scopes.split(' ').includes('openid')) {
    problems.push(`${prefix}_SCOPES must have openid among them`);
  }
  return problems;
}

/** The variables of a named provider whose name or value is malformed. */
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
  const issuer = given(entry, env, 'ISSUER') ?? preset?.issuer;
  const clientId = given(entry, env, 'CLIENT_ID');
  const clientSecret = given(entry, env, 'CLIENT_SECRET');
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return undefined;
  const { kind, provesLogin } = preset ?? openIdConnect;
  const scopes = given(entry, env, 'SCOPES') ?? (preset ?? openIdConnect).scopes;
  const isTrustedForMfa = given(entry, env, 'TRUSTED_MFA') === 'on';
  return { kind, issuer, clientId, clientSecret, scopes, provesLogin, isTrustedForMfa };
}
