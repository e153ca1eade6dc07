import type { Kysely } from 'kysely';
import type { User } from '../../entities/index.ts';
import type { Tables } from '../parts/database/tables.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';

/**
 * Hands an account that nobody has verified to the owner of its address, who came by `provider`. Whoever registered it keeps
 * no way in: neither a password nor a token, nor an identity at a provider that does not verify addresses. The caller holds
 * the lock on the user.
 */
export async function claimAccount(
  tables: Kysely<Tables>,
  tokens: OneTimeTokens,
  user: User,
  provider: string,
): Promise<void> {
  user.claim(provider);
  await tokens.revoke(tables, user.id, 'verify-email');
  await tables.deleteFrom('identities').where('user_id', '=', user.id).execute();
}
