import type { CompiledQuery } from 'kysely';
import {
  changedProfile,
  optionalProfileFields,
  type ProfileChange,
  type ProfileFields,
  storedProfile,
} from '../../entities/index.ts';
import { sql, type WriteTables } from '../parts/database/contract.ts';

/** What the answer is made of. */
interface ReadUser extends ProfileFields {
  id: string;
  email: string;
  provider: string;
  role: string;
  emailVerified: boolean;
  sessionEpoch: number;
}

interface Replacement<User> {
  /** As the caller's session has read it. */
  user: User;
  change: ProfileChange;
}

const profileFields: (keyof ProfileFields)[] = ['name', ...optionalProfileFields];

/**
 * Changes a profile by one statement, which compares the row with what the session has read of it and replaces it: the
 * answer is then known without reading the row again. Undefined where the row is another one by now, where its session
 * has ended, and where the avatar changes, on which uploads depend.
 */
export const createProfileReplacement = () => {
  let compiled: CompiledQuery | undefined;

  return async <User extends ReadUser>(
    tables: WriteTables,
    { user, change }: Replacement<User>,
  ): Promise<User | undefined> => {
    const profile = changedProfile(user, change);
    if (profile.avatar !== user.avatar) return undefined;
    const { searchName, ...next } = storedProfile(profile);
    const values = [
      ...profileFields.map((field) => next[field]),
      searchName,
      user.id,
      user.sessionEpoch,
      user.email,
      user.provider,
      user.role,
      user.emailVerified ? 1 : 0,
      ...profileFields.map((field) => bytesOf(user[field])),
    ];
    compiled ??= compileStatement(tables);
    const { numAffectedRows } = await tables.executeQuery({ ...compiled, parameters: values });
    return numAffectedRows === 1n ? { ...user, ...profile } : undefined;
  };
};

/** Compiled once, with any values; the real ones follow in this order. */
const compileStatement = (tables: WriteTables): CompiledQuery =>
  tables
    .updateTable('users')
    .set({ ...Object.fromEntries(profileFields.map((field) => [field, ''])), search_name: '' })
    .where('id', '=', '')
    .where('session_epoch', '=', 0)
    .where('email', '=', '')
    .where('provider', '=', '')
    .where('role', '=', 'user')
    .where('email_verified', '=', 0)
    .where(sql<boolean>`${sql.join(profileFields.map(hasBytes), sql` and `)}`)
    .compile();

const hasBytes = (field: keyof ProfileFields) => sql`hex(coalesce(${sql.ref(field)}, '')) = ${''}`;

/** Compared as bytes, because the columns' collations ignore case; unset is empty. */
const bytesOf = (text: string | null): string =>
  Buffer.from(text ?? '')
    .toString('hex')
    .toUpperCase();
