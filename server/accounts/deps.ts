import type { User } from '../../entities/index.ts';
import type { Activity } from '../activity/index.ts';
import type { AllTables, Database, EntityManager } from '../parts/database/contract.ts';
import type { Consents } from './consents.ts';
import type { EmailChangeRows } from './email-change-rows.ts';
import type { RecordEvent } from './events.ts';
import type { InvitationRows } from './invitation-rows.ts';
import type { Limits } from './limits.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';
import type { Outbox } from './outbox.ts';
import type { Passwords } from './passwords.ts';
import type { RegistrationPolicy } from './registration-policy.ts';
import type { Sessions } from './sessions.ts';
import type { Users } from './users.ts';

/** The parts that the account rules work with. */
export interface Deps {
  consents: Pick<Consents, 'record' | 'removeSince' | 'requireAccepted'>;
  database: Database;
  /** Deletes the user's row; a job removes everything else. The caller holds the lock on the user. */
  deleteUser(em: EntityManager, tables: AllTables, user: User): Promise<void>;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
  limits: Limits;
  outbox: Outbox;
  passwords: Passwords;
  /** Inserts an event, and queues the mail about it. */
  record: RecordEvent;
  /** Inserts an event of which no mail tells. */
  recordUnmailed: Activity['record'];
  registration: RegistrationPolicy;
  sessions: Sessions;
  /** Whether a picture at a provider may be the avatar of a new account. */
  takesPictures: boolean;
  tokens: OneTimeTokens;
  users: Users;
}
