/**
 * Removal of users after their grace period. The first transaction deletes the user's row and all rows with a foreign
 * key to it: from then on nobody can log in or restore the account, and the address is free. Further steps delete the
 * rest. The row of `removals` is deleted last, so any process can continue after a crash; with it the event is recorded.
 */
import { Removal } from '../../../entities/index.ts';
import type { Activity } from '../../activity/index.ts';
import { type AllTables, type Database, nowOf, sql } from '../../parts/database/contract.ts';
import type { Log } from '../../telemetry/log.ts';
import { gauges, MAX_COUNTED } from '../../telemetry/metrics.ts';
import { createLeases } from '../../workers/leases.ts';
import { createWorker } from '../../workers/worker.ts';
import { type AvatarChanged, type DeleteUser, lockUser } from '../users/index.ts';

const AT_ONCE = 4;
/** After a crash, another process continues this much later. */
const LEASE_MS = 20_000;
/** The delay before the next check for leftovers: objects are deleted by the uploads' own job. */
const AGAIN_MS = 5_000;
/** Longer than any request that began before the removal: what such a request still writes is deleted too. */
const SETTLED_MS = 10 * 60_000;

type LeasedRemoval = Pick<Removal, 'userId'>;

/** Deletes a user's data in one place, in batches. Resolves to whether all is deleted. Idempotent. */
type RemovalStep = (removed: { userId: string; email: string; begunAt: number }) => Promise<boolean>;

interface Parts {
  database: Database;
  steps: RemovalStep[];
  /** The avatar may be another user's upload, which is deleted once no profile shows it. */
  avatarChanged: AvatarChanged;
  /** Inserts the event that the user was removed. */
  recordRemoved: Activity['recordRemoved'];
  log: Log;
}

/** Creates the worker that removes users, and `deleteUser`. */
export const createRemoval = ({ database, steps, avatarChanged, recordRemoved, log }: Parts) => {
  /** The rest follows after the commit. */
  const deleteUser: DeleteUser = async (em, tables, user) => {
    const begunAt = await nowOf(database, tables);
    await em.upsert(Removal, { userId: user.id, email: user.email, begunAt, dueAt: begunAt });
    await avatarChanged(tables, { userId: user.id, former: user.profile.avatar, next: null });
    await em.remove(user).flush();
  };

  const find = (tables: Pick<AllTables, 'selectFrom'>, userId: string) =>
    tables
      .selectFrom('removals')
      .select(['user_id as userId', 'email', 'begun_at as begunAt'])
      // A lease has moved the time. A later time means that the account was deleted again since the lease began.
      .select(sql<number>`due_at <= ${database.now} + ${LEASE_MS}`.as('isDue'))
      .where('user_id', '=', userId)
      .executeTakeFirst();

  /** Undefined if the account was restored. */
  const begin = (userId: string) =>
    database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id: userId });
      const removal = await find(tables, userId);
      if (removal && user && removal.isDue) await deleteUser(em, tables, user);
      return user ? find(tables, userId) : removal;
    }, userId);

  const work = async ({ userId }: LeasedRemoval): Promise<void> => {
    const removal = await begin(userId);
    if (!removal?.begunAt) return;
    const { email, begunAt } = removal;
    let isEmpty = true;
    for (const step of steps) isEmpty = (await step({ userId, email: email ?? '', begunAt })) && isEmpty;
    await database.write((tables) =>
      tables
        .updateTable('removals')
        .set({ due_at: sql`${database.now} + ${AGAIN_MS}` })
        .where('user_id', '=', userId)
        .execute(),
    );
    if (isEmpty) await finish(userId);
  };

  /** Only one of several processes deletes the row, and records the event. */
  const finish = (userId: string): Promise<void> =>
    database.change(async (tables) => {
      const { numDeletedRows } = await tables
        .deleteFrom('removals')
        .where('user_id', '=', userId)
        .where('begun_at', '<', sql<number>`${database.now} - ${SETTLED_MS}`)
        .executeTakeFirst();
      if (numDeletedRows === 1n) await recordRemoved(tables, userId);
    });

  const leases = createLeases(database, {
    table: 'removals',
    key: 'user_id',
    keyOf: ({ userId }: LeasedRemoval) => userId,
    leaseMs: LEASE_MS,
    select: (tables) => tables.selectFrom('removals').select('user_id as userId'),
    toRow: (row) => row,
  });

  /**
   * The number of due or running removals, and the age of the oldest in ms. Running ones are due again within a lease,
   * so the index of `due_at` finds both.
   */
  const backlog = () =>
    database.query((tables) =>
      tables
        .selectFrom(
          tables
            .selectFrom('removals')
            .select(sql<number>`coalesce(begun_at, due_at)`.as('since'))
            .where('due_at', '<=', sql<number>`${database.now} + ${LEASE_MS}`)
            .where(sql<boolean>`(begun_at is not null or due_at <= ${database.now})`)
            .orderBy('due_at')
            .limit(MAX_COUNTED)
            .as('due'),
        )
        .select([
          sql<number>`count(*)`.as('due'),
          sql<number>`coalesce(${database.now} - min(since), 0)`.as('oldestMs'),
        ])
        .executeTakeFirstOrThrow(),
    );
  gauges(async () => {
    const { due, oldestMs } = await backlog();
    return { account_removals_due: Number(due), account_removals_oldest_age_seconds: Number(oldestMs) / 1000 };
  });

  const { start, stop } = createWorker({ name: 'removals', atOnce: AT_ONCE, leases, work, log });

  return { deleteUser, start, stop };
};
