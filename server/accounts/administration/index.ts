import type { Activity } from '../../activity/index.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { Credentials } from '../credentials/index.ts';
import type { AccountDeletion } from '../lifecycle/index.ts';
import type { Outbox, RecordEvent } from '../mail/index.ts';
import type { IdentityLinks } from '../providers/index.ts';
import type { Sessions } from '../sessions/index.ts';
import { createAccountActs } from './administration.ts';
import { createMailAdministrators } from './mail-administrators.ts';
import { createManagedUsers } from './managed-users.ts';

export type { ManagedUser } from './managed-users.ts';

interface Parts {
  database: Database;
  activity: Activity;
  limits: Limits;
  outbox: Outbox;
  record: RecordEvent;
  sessions: Sessions;
  credentials: Pick<Credentials, 'passkeys' | 'totp'>;
  links: IdentityLinks;
  deletion: AccountDeletion;
}

/** The view and the acts of administrators and operators on accounts. */
export const createAdministration = ({ activity, credentials, deletion, ...parts }: Parts) => ({
  users: createManagedUsers({ ...parts, ...credentials }),
  mailAdministrators: createMailAdministrators(parts.outbox),
  wakeMails: parts.outbox.wake,
  acts: createAccountActs({ ...parts, recordUnmailed: activity.record, requestDeletion: deletion.requestDeletion }),
});
