import type { ReadTables } from '../../parts/database/contract.ts';
import type { LoginMethod } from '../../shared/method-names.ts';

/**
 * The kinds of login methods added to a user's password, without duplicates. Empty if `email` is no longer the user's
 * address. Recovery codes count as part of the authenticator app.
 */
export async function addedMethodsOf(
  tables: ReadTables,
  { userId, email }: { userId: string; email: string },
): Promise<LoginMethod[]> {
  const ofUser = (table: 'identities' | 'passkeys' | 'totps') =>
    tables
      .selectFrom(table)
      .innerJoin('users', 'users.id', `${table}.user_id`)
      .where('users.id', '=', userId)
      .where('users.email', '=', email);
  const identities = await ofUser('identities').select('identities.provider').distinct().execute();
  const passkey = await ofUser('passkeys').select('users.id').limit(1).execute();
  const app = await ofUser('totps').select('users.id').limit(1).execute();
  return [
    ...identities.map(({ provider }) => provider),
    ...passkey.map(() => 'passkey' as const),
    ...app.map(() => 'totp' as const),
  ];
}
