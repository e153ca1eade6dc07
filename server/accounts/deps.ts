import type { User } from '../../entities/index.ts';
import type { AllTables, Database, EntityManager } from '../parts/database/contract.ts';
import type { Limits } from './limits.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';
import type { Outbox } from './outbox.ts';
import type { Passwords } from './passwords.ts';
import type { Sessions } from './sessions.ts';
import type { Users } from './users.ts';

/** The parts that the account rules work with. */
export interface Deps {
  database: Database;
  /** Deletes the user's row and everything that depends on it. The caller holds the lock on the user. */
  deleteUser(em: EntityManager, tables: AllTables, user: User): Promise<void>;
  limits: Limits;
  outbox: Outbox;
  passwords: Passwords;
  sessions: Sessions;
  tokens: OneTimeTokens;
  users: Users;
}
