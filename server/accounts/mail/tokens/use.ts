import type { Caller } from '../../../activity/caller.ts';
import { ServiceError } from '../../../errors.ts';
import type { Limits } from '../../../limits/index.ts';
import type { AllTables, Database, EntityManager } from '../../../parts/database/contract.ts';
import { type LockedUser, lockUser } from '../../users/index.ts';
import type { TokenPurpose } from '../kinds.ts';
import type { FoundToken, OneTimeTokens } from './one-time.ts';

export interface TokenScope {
  em: EntityManager;
  tables: AllTables;
  /** The user who received the token. */
  user: LockedUser;
  found: FoundToken;
}

interface Needs {
  database: Database;
  tokens: Pick<OneTimeTokens, 'find'>;
  limits: Pick<Limits, 'refuseToken'>;
}

interface Presented {
  /** The accepted purposes. */
  purposes: readonly TokenPurpose[];
  token: string;
  caller: Caller;
  isUsable(found: FoundToken): boolean;
}

/**
 * Runs under the lock on the token's user, and reads the token again there. INVALID_TOKEN if it is unusable: counted as
 * a guess, unless it has become so just now.
 */
export async function withToken<Result>(
  { database, tokens, limits }: Needs,
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
