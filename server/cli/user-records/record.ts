import { z } from 'zod';
import * as fields from '../../../routers/schemas/fields.ts';
import { readHash } from '../../accounts/credentials/index.ts';
import type { ImportedIdentity, ImportedUser } from '../../accounts/data/index.ts';
import { isStorableIdentity } from '../../accounts/providers/index.ts';
import { type CustomFields, nameFromAddress } from '../../accounts/users/index.ts';
import { type IdentityProviderClient, providerName } from '../../config/identity-providers.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import type { FieldValues } from '../../shared/profile-fields.ts';

/**
 * A line of the file of `npm run users:import` and `npm run users:export`, validated by the rules of the user's fields.
 */

/** The length of the column. */
const MAX_HASH = 255;
const MAX_IDENTITIES = 20;
/** The service is newer; a lower number probably means seconds. */
const EARLIEST = Date.UTC(1975, 0);
/** The maximum difference between the clocks of two machines. */
const CLOCKS_DIFFER_MS = 10 * 60_000;

const timeOfCreation = z
  .union([z.int(), z.iso.datetime({ offset: true }).transform((text) => Date.parse(text))], {
    error: 'Must be a time in ISO 8601 with its offset, or in milliseconds since 1970',
  })
  .refine((time) => time >= EARLIEST, 'Must be after 1975: in milliseconds, not in seconds')
  .refine((time) => time <= Date.now() + CLOCKS_DIFFER_MS, 'Must not be in the future');

const storedHash = z
  .string()
  .max(MAX_HASH, { error: `Must have at most ${MAX_HASH} characters`, abort: true })
  .superRefine((stored, check) => {
    const found = readHash(stored);
    if ('problem' in found) check.addIssue({ code: 'custom', message: `Cannot be used: ${found.problem}` });
  });

const identity = z
  .strictObject({
    provider: providerName.optional(),
    issuer: z.string().optional(),
    subject: z.union([z.string(), z.int().transform(String)], { error: 'Must be a string or an integer' }),
    email: fields.email.nullish(),
    proven: z.boolean().default(true),
  })
  .refine(({ provider, issuer }) => provider !== undefined || issuer !== undefined, 'Requires a provider or an issuer');

const { name, ...optionalProfile } = fields.profile;

const record = z.strictObject({
  email: fields.email,
  name: name.nullish(),
  ...z.object(optionalProfile).partial().shape,
  fields: z.custom<FieldValues>().nullish(),
  language: fields.language.nullish(),
  emailVerified: z.boolean().default(false),
  passwordHash: storedHash.nullish(),
  passwordProven: z.boolean().default(true),
  blocked: z.boolean().default(false),
  createdAt: timeOfCreation.nullish(),
  identities: z.array(identity).max(MAX_IDENTITIES).nullish(),
});

/** The output of the export; the import reads it unchanged. */
export type UserRecord = z.input<typeof record>;

/** `note` says which part of the line is ignored. */
export type ParsedRecord = { user: ImportedUser; note?: string } | { problem: string };

interface Rules {
  /** The configured providers. */
  identityProviders: Providers;
  /** The avatar to store, null to omit it. */
  avatarAt(address: string): string | null;
  customFields: Pick<CustomFields, 'changeSchema'>;
}

type Providers = ReadonlyMap<ProviderName, Pick<IdentityProviderClient, 'kind' | 'issuer'>>;

/** Reads lines. An avatar, or a field of the operator's own, that is not accepted is ignored. Problems never quote a value. */
export const createRecordReader =
  ({ identityProviders, avatarAt, customFields }: Rules) =>
  (text: string): ParsedRecord => {
    const ownFields = customFields.changeSchema('administrators');
    const parsed = record.safeParse(parsedJson(text));
    if (!parsed.success) return { problem: parsed.error.issues.map(sentenceOf).join('; ') };
    const {
      email,
      passwordHash,
      passwordProven,
      blocked: isBlocked,
      language,
      emailVerified,
      createdAt,
      identities: given,
      fields: own,
      ...profile
    } = parsed.data;
    const fieldsRead = ownFieldsIn(own ?? {}, ownFields);
    if ('problem' in fieldsRead) return fieldsRead;
    const identities: ImportedIdentity[] = [];
    for (const [i, { proven, ...one }] of (given ?? []).entries()) {
      const found = resolved(one, identityProviders);
      if ('problem' in found) return { problem: `identities.${i}: ${found.problem}` };
      if (identities.some(({ issuer, subject }) => issuer === found.issuer && subject === found.subject)) {
        return { problem: `identities.${i}: Must not be repeated` };
      }
      identities.push({ ...found, email: one.email ?? null, proven });
    }
    const avatar = profile.avatar && avatarAt(profile.avatar);
    const notes = [...(profile.avatar && !avatar ? ['avatar omitted: AVATARS=own'] : []), ...fieldsRead.notes];
    return {
      ...(notes.length > 0 && { note: notes.join('; ') }),
      user: {
        email,
        profile: {
          ...profile,
          name: profile.name ?? nameFromAddress(email),
          avatar,
        },
        fields: fieldsRead.fields,
        emailVerified,
        passwordHash: passwordHash ?? null,
        passwordProven,
        isBlocked,
        language: language ?? null,
        createdAt: createdAt ?? Date.now(),
        identities,
      },
    };
  };

/** The operator's own fields, with a note for each that the rules refuse. */
function ownFieldsIn(
  own: FieldValues,
  schema: z.ZodType<FieldValues>,
): { fields: FieldValues; notes: string[] } | { problem: string } {
  const rules = z.object({ fields: schema });
  const first = rules.safeParse({ fields: own });
  if (first.success) return { ...first.data, notes: [] };
  // By the name; a problem of all fields together has none.
  const refused = new Map(first.error.issues.map(({ path, message }) => [String(path[1] ?? ''), message]));
  const accepted = Object.fromEntries(Object.entries(own).filter(([name]) => !refused.has(name)));
  const second = rules.safeParse({ fields: Array.isArray(own) ? own : accepted });
  if (!second.success) return { problem: second.error.issues.map(sentenceOf).join('; ') };
  return {
    ...second.data,
    notes: [...refused].map(([name, message]) => `fields.${namesOf([name])} omitted: ${message}`),
  };
}

/** An empty name counts as missing. */
function parsedJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    const isNameless = typeof value === 'object' && value !== null && 'name' in value && value.name === '';
    return isNameless ? { ...value, name: null } : value;
  } catch {
    return undefined;
  }
}

const sentenceOf = ({ code, path, message, ...issue }: z.core.$ZodIssue): string => {
  if (path.length === 0 && code === 'invalid_type') return 'Must be a JSON object';
  // The names of unknown fields can be any text of any length.
  const text = code === 'unrecognized_keys' && 'keys' in issue ? `Has unknown fields: ${namesOf(issue.keys)}` : message;
  return path.length === 0 ? text : `${path.join('.')}: ${text}`;
};

const namesOf = (keys: readonly string[]): string =>
  keys.map((key) => (/^\w{1,32}$/.test(key) ? key : '(a name of other characters)')).join(', ');

/** Resolves the issuer to that of a login through the provider. */
function resolved(
  { provider, issuer, subject }: { provider?: ProviderName | undefined; issuer?: string | undefined; subject: string },
  providers: Providers,
): Pick<ImportedIdentity, 'provider' | 'issuer' | 'subject'> | { problem: string } {
  const named = nameOf({ provider, issuer }, providers);
  if (named === undefined) return { problem: 'No provider of this issuer is configured' };
  const known = issuer ?? issuerOf(providers.get(named));
  if (known === undefined) return { problem: `The provider ${named} is not configured here: its issuer must be given` };
  if (tenants.test(known)) return { problem: 'The issuer must be that of the tenant, as in the ID token (iss)' };
  const isStorable = isStorableIdentity({ issuer: known, subject });
  return isStorable
    ? { provider: named, issuer: known, subject }
    : { problem: 'Issuer and subject must have 1 to 255 printable ASCII characters' };
}

/** Microsoft's URLs for users of any tenant: no ID token has them. */
const tenants = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)\//;

const nameOf = (
  { provider, issuer }: { provider?: ProviderName | undefined; issuer?: string | undefined },
  providers: Providers,
): ProviderName | undefined => provider ?? [...providers].find(([, client]) => issuerOf(client) === issuer)?.[0];

/** A provider with its own API: its URL without a trailing slash. */
const issuerOf = (client: Pick<IdentityProviderClient, 'kind' | 'issuer'> | undefined): string | undefined =>
  client?.kind === 'oidc' ? client.issuer : client?.issuer.replace(/\/+$/, '');
