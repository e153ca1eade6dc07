import { Identity, type ProfileChange, User } from '../../entities/index.ts';
import { operator } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { type AllTables, type Database, type ReadTables, rowOf } from '../parts/database/contract.ts';
import { reservedAmong } from './email-change-rows.ts';
import { decide } from './identity-keys.ts';

export interface ImportedIdentity {
  /** A configured name, such as `github`. */
  provider: string;
  issuer: string;
  subject: string;
  /** The address that the provider stated, normalized. */
  email: string | null;
  proven: boolean;
}

/** A user of another product, or of another installation, whose fields are valid. */
export interface ImportedUser {
  /** Normalized. */
  email: string;
  profile: ProfileChange & { name: string };
  emailVerified: boolean;
  passwordHash: string | null;
  passwordProven: boolean;
  isBlocked: boolean;
  language: string | null;
  /** Milliseconds since 1970. */
  createdAt: number;
  identities: readonly ImportedIdentity[];
}

/** `exists`: a user has the address. `reserved`: a user had it until lately, and can take it back. */
export type ImportOutcome = 'imported' | 'exists' | 'reserved' | 'identity-linked';

type IdentityKey = Pick<ImportedIdentity, 'issuer' | 'subject'>;

const keyOf = ({ issuer, subject }: IdentityKey): string => `${issuer}\n${subject}`;

/** Imports users from elsewhere. No mail is sent, and a user who is there already stays as it is. */
export const createUserImport = (database: Database, activity: Pick<Activity, 'recordAll'>) => {
  /** Of those whose accounts were made at the same time, the one that is imported later is the newer. */
  let turn = 0;

  /** What is there already of a batch. */
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
    return { emails: new Set(found.map(({ email }) => email)), identities: new Set(linked.map(keyOf)) };
  };

  /** Called after the insert too, which waits for a change that gives the address up. */
  const findReserved = async (tables: ReadTables, users: readonly ImportedUser[]): Promise<Set<string>> => {
    const emails = users.map(({ email }) => email);
    const reserved = emails.length > 0 ? await reservedAmong(database, tables, emails) : [];
    return new Set(reserved.map(({ former }) => former));
  };

  const judge = async (tables: ReadTables, users: readonly ImportedUser[]): Promise<ImportOutcome[]> => {
    const existing = await findExisting(tables, users);
    const reserved = await findReserved(tables, users);
    return users.map(({ email, identities }) => {
      if (existing.emails.has(email)) return 'exists';
      if (reserved.has(email)) return 'reserved';
      return identities.some((identity) => existing.identities.has(keyOf(identity))) ? 'identity-linked' : 'imported';
    });
  };

  const insert = async (tables: AllTables, imported: readonly ImportedUser[]): Promise<void> => {
    const users = imported.map((values) => ({ values, user: userOf(values, turn++) }));
    await tables
      .insertInto('users')
      .values(users.map(({ user }) => rowOf('users', user)))
      .execute();
    const identities = users.flatMap(({ values, user }) => identitiesOf(values, user));
    if (identities.length > 0) {
      await tables
        .insertInto('identities')
        .values(identities.map((identity) => rowOf('identities', identity)))
        .execute();
    }
    const registered = { kind: 'registered', details: { method: 'import' } } as const;
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
    /** What would become of each user, in the same order. */
    preview: (users: readonly ImportedUser[]): Promise<ImportOutcome[]> =>
      database.query((tables) => judge(tables, users)),

    /**
     * Imports a batch of users, of which no two have an address or an identity in common, in one transaction: a user comes with
     * all that belongs to it, or not at all. Answers what became of each, in the same order.
     */
    importAll: (users: readonly ImportedUser[]): Promise<ImportOutcome[]> => decide(() => importOnce(users)),
  };
};

export type UserImport = ReturnType<typeof createUserImport>;

/** A change of address was committed between the look at the reserved ones and the insert: the batch is judged again. */
class GivenUpMeanwhile extends Error {}

/** The first way to log in, as a user's `provider` names one. */
const userOf = ({ identities, ...values }: ImportedUser, turn: number): User =>
  User.import({
    ...values,
    turn,
    provider: values.passwordHash === null ? (identities[0]?.provider ?? 'email') : 'email',
  });

/** What the former product knew of a verified user counts as the user's own; of any other user nothing does. */
const identitiesOf = ({ identities, emailVerified, createdAt }: ImportedUser, user: User): Identity[] =>
  identities.map(({ proven, email, ...values }) => {
    const identity = Identity.link(user.id, { ...values, email: email ?? undefined });
    identity.createdAt = createdAt;
    if (emailVerified && proven) identity.prove();
    return identity;
  });
