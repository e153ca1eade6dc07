import { v7 as uuidv7 } from 'uuid';
import { SharedLock, type User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { AllTables, EntityManager, ReadTables } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import type { Session } from './sessions.ts';
import { changeAsOwner } from './sessions-of-user.ts';

/** The row of `shared_locks` that every change writes which takes an administrator away. */
const LOCK = 'administrators';

/** Those who can log in. */
const activeAdministrators = (tables: ReadTables) =>
  tables
    .selectFrom('users')
    .select('id')
    .where('role', '=', 'admin')
    .where('email_verified', '=', 1)
    .where('blocked_at', 'is', null)
    .where('deleted_at', 'is', null);

/**
 * Before a user ceases to be an administrator who can log in: LAST_ADMINISTRATOR if there is no other. Comes right after the
 * lock on the user and before anything is read without a lock, because a transaction sees the rows of others as they were at
 * its first such read.
 */
export async function keepAdministrator(em: EntityManager, tables: ReadTables, user: User): Promise<void> {
  if (!user.isActiveAdministrator) return;
  await em.upsert(SharedLock, { name: LOCK, holder: uuidv7() });
  const other = await activeAdministrators(tables).where('id', '<>', user.id).limit(1).executeTakeFirst();
  if (!other) throw new ServiceError('LAST_ADMINISTRATOR');
}

/** FORBIDDEN where the caller is an administrator no more: blocked, deleted or without the role since the call began. */
export async function requireStillAdministrator(tables: ReadTables, { actor, actorId }: Caller): Promise<void> {
  if (actor !== 'administrator') return;
  const found = await activeAdministrators(tables)
    .where('id', '=', actorId ?? '')
    .executeTakeFirst();
  if (!found) throw new ServiceError('FORBIDDEN');
}

/** A change by an administrator that is about no other user's row: FORBIDDEN as above, by the caller's own, which it locks. */
export const asAdministrator = <Changed>(
  deps: Pick<Deps, 'database' | 'outbox'>,
  session: Session,
  change: (tables: AllTables) => Promise<Changed>,
): Promise<Changed> =>
  changeAsOwner(deps, session, async (_em, tables, user) => {
    if (!user.isActiveAdministrator) throw new ServiceError('FORBIDDEN');
    return change(tables);
  });
