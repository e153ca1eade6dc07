import { Identity, type ProfileChange, User } from '../../../entities/index.ts';
import { operator } from '../../activity/caller.ts';
import type { Activity } from '../../activity/index.ts';
import {
  type AllTables,
  type Database,
  type ReadTables,
  retryOnDuplicate,
  rowOf,
} from '../../parts/database/contract.ts';
import type { OwnOrigin, ProviderName } from '../../shared/method-names.ts';
import type { FieldValues } from '../../shared/profile-fields.ts';
import { reservedAmong } from '../mail/index.ts';
import { type CustomFields, storeNameWords, toStoredFields } from '../users/index.ts';

export interface ImportedIdentity {
  provider: ProviderName;
  issuer: string;
  subject: string;
  /** The address stated by the provider, normalized. */
  email: string | null;
  proven: boolean;
}

/** A user of another product or installation, with valid fields. */
export interface ImportedUser {
  /** Normalized. */
  email: string;
  profile: ProfileChange & { name: string };
  /** The operator's own fields. */
  fields: FieldValues;
  emailVerified: boolean;
  passwordHash: string | null;
  passwordProven: boolean;
  isBlocked: boolean;
  language: string | null;
  /** Milliseconds since 1970. */
  createdAt: number;
  identities: readonly ImportedIdentity[];
}

/**
 * `exists`: a user has the address. `reserved`: a former user of the address can still take it back. `field-taken`:
 * another user has the value of a unique field.
 */
export type ImportOutcome = 'imported' | 'exists' | 'reserved' | 'identity-linked' | 'field-taken';

type IdentityKey = Pick<ImportedIdentity, 'issuer' | 'subject'>;

const uniqueKeyOf = (unique: { field: string; value_hash: string }): string => `${unique.field}\n${unique.value_hash}`;

const keyOf = ({ issuer, subject }: IdentityKey): string => `${issuer}\n${subject}`;

/** Imports users. Sends no mail and does not change existing users. */
export const createUserImport = (
  database: Database,
  activity: Pick<Activity, 'recordAll'>,
  { uniqueIn }: Pick<CustomFields, 'uniqueIn'>,
) => {
  /** Orders users created at the same time by their import. */
  let turn = 0;

  /** The existing addresses and identities of a batch. */
  const findExisting = async (tables: ReadTables, users: readonly ImportedUser[]) => {
    const emails = users.map(({ email }) => email);
    const found = await tables.selectFrom('users').select('email').where('email', 'in', emails).execute();
    const identities = users.flatMap((user) => user.identities);
    const linked =
      identities.length === 0
        ? []
        : await tables
            .selectFrom('identities')
            .select(['issuer', 'subject'])
            .where('issuer', 'in', [...new Set(identities.map(({ issuer }) => issuer))])
            .where('subject', 'in', [...new Set(identities.map(({ subject }) => subject))])
            .execute();
    const values = users.flatMap((user) => uniqueIn(user.fields));
    const taken =
      values.length === 0
        ? []
        : await tables
            .selectFrom('unique_values')
            .select(['field', 'value_hash'])
            .where('field', 'in', [...new Set(values.map(({ field }) => field))])
            .where('value_hash', 'in', [...new Set(values.map((unique) => unique.value_hash))])
            .execute();
    return {
      emails: new Set(found.map(({ email }) => email)),
      identities: new Set(linked.map(keyOf)),
      values: new Set(taken.map(uniqueKeyOf)),
    };
  };

  /** Also called after the insert, which waits for a concurrent change that gives the address up. */
  const findReserved = async (tables: ReadTables, users: readonly ImportedUser[]): Promise<Set<string>> => {
    const emails = users.map(({ email }) => email);
    const reserved = emails.length > 0 ? await reservedAmong(database, tables, emails) : [];
    return new Set(reserved.map(({ former }) => former));
  };

  const judge = async (tables: ReadTables, users: readonly ImportedUser[]): Promise<ImportOutcome[]> => {
    const existing = await findExisting(tables, users);
    const reserved = await findReserved(tables, users);
    return users.map(({ email, identities, fields }) => {
      if (existing.emails.has(email)) return 'exists';
      if (reserved.has(email)) return 'reserved';
      if (uniqueIn(fields).some((unique) => existing.values.has(uniqueKeyOf(unique)))) return 'field-taken';
      return identities.some((identity) => existing.identities.has(keyOf(identity))) ? 'identity-linked' : 'imported';
    });
  };

  const insert = async (tables: AllTables, imported: readonly ImportedUser[]): Promise<void> => {
    const users = imported.map((values) => ({ values, user: userOf(values, turn++) }));
    await tables
      .insertInto('users')
      .values(users.map(({ user }) => rowOf('users', user)))
      .execute();
    await storeNameWords(
      tables,
      users.map(({ user }) => user),
    );
    const identities = users.flatMap(({ values, user }) => identitiesOf(values, user));
    if (identities.length > 0) {
      await tables
        .insertInto('identities')
        .values(identities.map((identity) => rowOf('identities', identity)))
        .execute();
    }
    const values = users.flatMap(({ values: { fields }, user }) =>
      uniqueIn(fields).map((unique) => ({ ...unique, user_id: user.id })),
    );
    if (values.length > 0) await tables.insertInto('unique_values').values(values).execute();
    const registered = { kind: 'registered', details: { method: 'import' satisfies OwnOrigin } } as const;
    await activity.recordAll(
      tables,
      users.map(({ user }) => user.id),
      registered,
      operator,
    );
  };

  const importOnce = (users: readonly ImportedUser[]): Promise<ImportOutcome[] | undefined> =>
    database
      .change(async (tables) => {
        const outcomes = await judge(tables, users);
        const imported = users.filter((_, i) => outcomes[i] === 'imported');
        if (imported.length === 0) return outcomes;
        await insert(tables, imported);
        if ((await findReserved(tables, imported)).size > 0) throw new GivenUpMeanwhile();
        return outcomes;
      })
      .catch((error: unknown) => {
        if (!(error instanceof GivenUpMeanwhile)) throw error;
        return undefined;
      });

  return {
    /** The outcome for each user, in the same order, without a change. */
    preview: (users: readonly ImportedUser[]): Promise<ImportOutcome[]> =>
      database.query((tables) => judge(tables, users)),

    /**
     * Imports a batch of users without common addresses or identities in one transaction. Resolves to the outcomes, in
     * the same order.
     */
    importAll: (users: readonly ImportedUser[]): Promise<ImportOutcome[]> => retryOnDuplicate(() => importOnce(users)),
  };
};

export type UserImport = ReturnType<typeof createUserImport>;

/**
 * A change of address was committed between the check of reserved addresses and the insert: the batch is checked again.
 */
class GivenUpMeanwhile extends Error {}

/** `provider` of the user is the first login method. */
const userOf = ({ identities, fields, ...values }: ImportedUser, turn: number): User =>
  User.import({
    ...values,
    fields: toStoredFields(fields),
    turn,
    provider: values.passwordHash === null ? (identities[0]?.provider ?? 'email') : 'email',
  });

/** The methods of a verified user are proven; those of any other user are not. */
const identitiesOf = ({ identities, emailVerified, createdAt }: ImportedUser, user: User): Identity[] =>
  identities.map(({ proven, email, ...values }) => {
    const identity = Identity.link(user.id, { ...values, email: email ?? undefined });
    identity.createdAt = createdAt;
    if (emailVerified && proven) identity.prove();
    return identity;
  });
