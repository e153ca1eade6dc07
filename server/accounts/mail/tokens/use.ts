import type { User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { AllTables, EntityManager } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import type { TokenPurpose } from './mail-kinds.ts';
import type { FoundToken } from './one-time-tokens.ts';
import { lockUser } from './users.ts';

export interface TokenScope {
  em: EntityManager;
  tables: AllTables;
  /** The user to whom the token was mailed, locked. */
  user: User;
  found: FoundToken;
}

interface Presented {
  /** The purposes for which the token is taken. */
  purposes: readonly TokenPurpose[];
  token: string;
  caller: Caller;
  isUsable(found: FoundToken): boolean;
}

/**
 * Works under the lock on the user to whom a token was mailed. An unusable token is refused, and counted as a guess; the
 * token is read again under the lock, because it may have been used or replaced meanwhile. Rejects with INVALID_TOKEN.
 */
export async function withToken<Result>(
  { database, tokens, limits }: Pick<Deps, 'database' | 'tokens' | 'limits'>,
  { purposes, token, caller, isUsable }: Presented,
  work: (scope: TokenScope) => Promise<Result>,
): Promise<Result> {
  const sent = await database.query((tables) => tokens.find(tables, purposes, token));
  if (!sent || !isUsable(sent)) throw await limits.refuseToken(caller.clientAddress);
  return database.transaction(async (em, tables) => {
    const user = await lockUser(em, { id: sent.userId });
    const found = await tokens.find(tables, purposes, token);
    if (!user || !found || !isUsable(found)) throw new ServiceError('INVALID_TOKEN');
    return work({ em, tables, user, found });
  }, sent.userId);
}
