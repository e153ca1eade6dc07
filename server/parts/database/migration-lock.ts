/*
 * The lock is a row with an owner and an end by the database's clock, not GET_LOCK, because the nodes of a cluster
 * share rows only.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import { v7 as uuid } from 'uuid';
import { ignored } from '../../telemetry/background.ts';
import { retryingConflicts } from '../deadline.ts';

const TABLE = sql.table('migration_lock');
/** After a crash another instance takes over after this time. */
const LEASE_MS = 30_000;
const RENEW_EVERY_MS = 5000;
/** Longer than a lease, to outlast a crash. */
const WAIT_MS = 60_000;
const POLL_MS = 500;

interface MigrationLock {
  /** Rejects if another instance has taken over. */
  renew(): Promise<void>;
  release(): Promise<void>;
}

/**
 * The lock of the instance that migrates, renewed until it is released. Undefined if `isDone` becomes true while
 * another instance holds it.
 */
export async function takeMigrationLock(
  tables: QueryExecutorProvider,
  { now, isDone }: { now: RawBuilder<number>; isDone(): Promise<boolean> },
): Promise<MigrationLock | undefined> {
  const owner = uuid();
  const waiting = AbortSignal.timeout(WAIT_MS);
  const run = async (statement: RawBuilder<unknown>, signal = waiting) => {
    const { numAffectedRows } = await retryingConflicts(signal, () => statement.execute(tables));
    return numAffectedRows === 1n;
  };
  const end = sql`${now} + ${LEASE_MS}`;

  await run(sql`create table if not exists ${TABLE} (
    id tinyint not null primary key, owner varchar(36) not null, ends_at bigint not null) engine = InnoDB`);
  await run(sql`insert ignore into ${TABLE} (id, owner, ends_at) values (1, '', 0)`);
  while (!(await run(sql`update ${TABLE} set owner = ${owner}, ends_at = ${end} where id = 1 and ends_at <= ${now}`))) {
    if (await isDone()) return undefined;
    if (waiting.aborted) throw new Error('another instance is migrating the database');
    await delay(POLL_MS);
  }

  const renew = async () => {
    const renewal = sql`update ${TABLE} set ends_at = ${end} where id = 1 and owner = ${owner}`;
    if (!(await run(renewal, AbortSignal.timeout(LEASE_MS)))) {
      throw new Error('another instance has taken over the migration');
    }
  };
  const timer = setInterval(() => renew().catch(ignored('renew_migration_lease')), RENEW_EVERY_MS);

  return {
    renew,
    async release() {
      clearInterval(timer);
      const end = sql`update ${TABLE} set ends_at = 0 where id = 1 and owner = ${owner}`;
      await run(end, AbortSignal.timeout(LEASE_MS)).catch(ignored('release_migration_lease'));
    },
  };
}
