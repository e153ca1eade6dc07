import type { Activity } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { Credentials } from '../credentials/index.ts';
import type { AccountDeletion } from '../lifecycle/index.ts';
import type { Outbox, RecordEvent } from '../mail/index.ts';
import type { IdentityLinks } from '../providers/index.ts';
import type { Sessions } from '../sessions/index.ts';
import type { Users } from '../users/index.ts';
import { createAccountActs } from './administration.ts';
import { createMailAdministrators } from './mail-administrators.ts';
import { createManagedUsers } from './managed-users.ts';

export { isListCursor, listOf, sorts, standings } from './lists.ts';
export type { FoundUser, ManagedUser } from './managed-users.ts';

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
  users: Pick<Users, 'customFields' | 'changeFieldsOf'>;
}

/** The view and the acts of administrators and operators on accounts. */
export const createAdministration = (
  { impersonation }: Pick<Config, 'impersonation'>,
  { activity, credentials, deletion, users, ...parts }: Parts,
) => ({
  users: createManagedUsers({ ...parts, activity, ...credentials, customFields: users.customFields }),
  mailAdministrators: createMailAdministrators(parts.outbox),
  acts: createAccountActs({
    ...parts,
    impersonation,
    recordUnmailed: activity.record,
    requestDeletion: deletion.requestDeletion,
    changeFieldsOf: users.changeFieldsOf,
  }),
});
