/**
 * The service always has an administrator who can log in. `endAdministrator` runs right after the lock on the user,
 * before any read without a lock: the first such read fixes the transaction's snapshot of other rows.
 */
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import {
  type AllTables,
  type Database,
  type EntityManager,
  lockShared,
  type ReadTables,
  sql,
} from '../../parts/database/contract.ts';
import type { Outbox } from '../mail/index.ts';
import { type LockedUser, lockUser } from '../users/index.ts';
import { changeAsOwner } from './of-user.ts';
import type { Session } from './sessions.ts';

/** Administrators who can log in. */
export const activeAdministrators = (tables: ReadTables) =>
  tables
    .selectFrom('users')
    .select('id')
    .where('role', '=', 'admin')
    .where('email_verified', '=', 1)
    .where('blocked_at', 'is', null)
    .where('deleted_at', 'is', null);

/**
 * Runs before an active administrator loses that state. LAST_ADMINISTRATOR if no other is left. Deletes the invitations
 * and disables the webhooks and applications that this user (or an intruder) created, enabled or changed last.
 */
export async function endAdministrator(em: EntityManager, tables: AllTables, user: LockedUser): Promise<void> {
  if (!user.isActiveAdministrator) return;
  await lockShared(em, 'administrators');
  const other = await activeAdministrators(tables).where('id', '<>', user.id).limit(1).executeTakeFirst();
  if (!other) throw new ServiceError('LAST_ADMINISTRATOR');
  await tables.deleteFrom('invitations').where('invited_by', '=', user.id).execute();
  const isOfUser = sql<boolean>`(administrator_id = ${user.id} or changed_by = ${user.id})`;
  const disabled = { disabled_by: sql<'administrator'>`coalesce(disabled_by, 'administrator')` };
  // Locks them before the rows of `webhooks`, as a change of an application does.
  await tables.updateTable('applications').set(disabled).where(isOfUser).execute();
  const applications = await tables.selectFrom('applications').select('id').where(isOfUser).execute();
  // A disabled application is told of no logout.
  for (const { id } of applications) await tables.deleteFrom('webhooks').where('id', '=', id).execute();
  await tables.updateTable('webhooks').set(disabled).where(isOfUser).execute();
  for (const table of ['applications', 'webhooks'] as const)
    await tables.updateTable(table).set({ administrator_id: null, changed_by: null }).where(isOfUser).execute();
}

/** FORBIDDEN if the caller has been demoted, blocked or deleted since the call began. */
export async function requireStillAdministrator(tables: ReadTables, { actor, actorId }: Caller): Promise<void> {
  if (actor !== 'administrator') return;
  const found = await activeAdministrators(tables).where('id', '=', actorId).executeTakeFirst();
  if (!found) throw new ServiceError('FORBIDDEN');
}

/** The same. The role ends only after the transaction: what depends on it is then stored. */
export async function lockStillAdministrator(em: EntityManager, { actor, actorId }: Caller): Promise<void> {
  if (actor !== 'administrator') return;
  const user = await lockUser(em, { id: actorId });
  if (!user?.isActiveAdministrator) throw new ServiceError('FORBIDDEN');
}

/** A change by an administrator that touches no other user's row. Locks the administrator's row: FORBIDDEN as above. */
export const asAdministrator = <Changed>(
  parts: { database: Database; outbox: Pick<Outbox, 'wake'> },
  session: Session,
  change: (tables: AllTables) => Promise<Changed>,
): Promise<Changed> =>
  changeAsOwner(parts, session, async (_em, tables, user) => {
    if (!user.isActiveAdministrator) throw new ServiceError('FORBIDDEN');
    return change(tables);
  });
