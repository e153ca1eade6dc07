import { Removal, type User } from '../../entities/index.ts';
import type { Log } from '../log.ts';
import { type AllTables, type Database, type EntityManager, nowOf, sql } from '../parts/database/contract.ts';
import { gauges } from '../telemetry/metrics.ts';
import { createLeases } from '../workers/leases.ts';
import { createWorker } from '../workers/worker.ts';
import { lockUser } from './users.ts';

const AT_ONCE = 4;
/** After a crash another process continues this much later. */
const LEASE_MS = 20_000;
/** What is left is looked for again this much later: objects are deleted by the uploads' own job. */
const AGAIN_MS = 5_000;
/** Longer than any request that began before the user was removed: what one of them still writes is deleted too. */
const SETTLED_MS = 10 * 60_000;

type LeasedRemoval = Pick<Removal, 'userId'>;

/** Deletes what is stored of a user in one place, in batches. Answers whether nothing is left there. May be repeated. */
export type RemovalStep = (removed: { userId: string; email: string; begunAt: number }) => Promise<boolean>;

/**
 * Removes users whose time to come back has passed. First the user's row, and with it everything that has a foreign key to it,
 * in the transaction in which the account can no longer be restored: from then on nobody logs in to it, and its address is
 * free. Then, step by step, the rest. The row of `removals` goes last, so that any process continues after a crash.
 */
export const createRemovals = (database: Database, { steps, log }: { steps: RemovalStep[]; log: Log }) => {
  /** Deletes the user's row. The caller holds the lock on the user; the rest follows after the commit. */
  const deleteUser = async (em: EntityManager, tables: AllTables, user: User): Promise<void> => {
    const begunAt = await nowOf(database, tables);
    await em.upsert(Removal, { userId: user.id, email: user.email, begunAt, dueAt: begunAt });
    await em.remove(user).flush();
  };

  const find = (tables: Pick<AllTables, 'selectFrom'>, userId: string) =>
    tables
      .selectFrom('removals')
      .select(['user_id as userId', 'email', 'begun_at as begunAt'])
      // A lease has moved the time; one of later was deleted anew since that began.
      .select(sql<number>`due_at <= ${database.now} + ${LEASE_MS}`.as('isDue'))
      .where('user_id', '=', userId)
      .executeTakeFirst();

  /** Undefined where the account was restored. */
  const begin = (userId: string) =>
    database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id: userId });
      const asked = await find(tables, userId);
      if (asked && user && asked.isDue) await deleteUser(em, tables, user);
      return user ? find(tables, userId) : asked;
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

  const finish = async (userId: string): Promise<void> => {
    await database.write((tables) =>
      tables
        .deleteFrom('removals')
        .where('user_id', '=', userId)
        .where('begun_at', '<', sql<number>`${database.now} - ${SETTLED_MS}`)
        .execute(),
    );
  };

  const leases = createLeases(database, {
    table: 'removals',
    key: 'user_id',
    keyOf: ({ userId }: LeasedRemoval) => userId,
    leaseMs: LEASE_MS,
    select: (tables) => tables.selectFrom('removals').select('user_id as userId'),
    toRow: (row) => row,
  });

  /**
   * How many removals are due or under way, and the age of the oldest in ms. Those under way are due again within a lease,
   * so the index of `due_at` finds both.
   */
  const backlog = () =>
    database.query((tables) =>
      tables
        .selectFrom('removals')
        .select([
          sql<number>`count(*)`.as('due'),
          sql<number>`coalesce(${database.now} - min(coalesce(begun_at, due_at)), 0)`.as('oldestMs'),
        ])
        .where('due_at', '<=', sql<number>`${database.now} + ${LEASE_MS}`)
        .where(sql<boolean>`(begun_at is not null or due_at <= ${database.now})`)
        .executeTakeFirstOrThrow(),
    );
  gauges(async () => {
    const { due, oldestMs } = await backlog();
    return { account_removals_due: Number(due), account_removals_oldest_age_seconds: Number(oldestMs) / 1000 };
  });

  const { start, stop } = createWorker({ name: 'removals', atOnce: AT_ONCE, leases, work, log });

  return { deleteUser, start, stop };
};

export type Removals = ReturnType<typeof createRemovals>;
