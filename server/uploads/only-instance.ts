import { setTimeout as delay } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { ConfigError } from '../config/index.ts';
import { type Database, retryOnDuplicate, sql } from '../parts/database/contract.ts';
import type { Log } from '../telemetry/log.ts';

const LOCK = 'files-on-disk';
/** After a crash the next start waits so long. */
const LEASE_MS = 15_000;
const RENEWED_EVERY_MS = 5000;
const POLLED_EVERY_MS = 500;

/**
 * The instance that keeps the files (UPLOADS=disk): another one would have other files. It holds a lease by the database
 * clock, which a start takes over once it ends, and renews.
 */
export function createOnlyInstance({ database, log }: { database: Database; log: Pick<Log, 'error'> }) {
  const holder = uuidv7();
  let renewal: NodeJS.Timeout | undefined;

  /** `otherEnds`: undefined if this instance holds the lease, else the end of the other's. */
  const takeOnce = () =>
    database.change(async (tables) => {
      const lease = { holder, expires_at: sql<number>`${database.now} + ${LEASE_MS}` };
      const row = tables.updateTable('shared_locks').set(lease).where('name', '=', LOCK);
      const { numUpdatedRows } = await row
        .where(({ eb, or }) => or([eb('holder', '=', holder), eb('expires_at', '<=', database.now)]))
        .executeTakeFirst();
      if (numUpdatedRows === 1n) return { otherEnds: undefined };
      const other = await tables
        .selectFrom('shared_locks')
        .select('expires_at as expiresAt')
        .where('name', '=', LOCK)
        .executeTakeFirst();
      if (other) return { otherEnds: Number(other.expiresAt) };
      await tables
        .insertInto('shared_locks')
        .values({ name: LOCK, ...lease })
        .execute();
      return { otherEnds: undefined };
    }, LOCK);
  const take = async () => (await retryOnDuplicate(takeOnce)).otherEnds;

  /** A process that was stopped for longer may find its lease taken. */
  const renew = async () => {
    if ((await take()) === undefined) return;
    log.error('UPLOADS=disk supports one instance, and another one has taken over: stop one of them');
  };

  const drop = async () => {
    await database
      .write((tables) =>
        tables.deleteFrom('shared_locks').where('name', '=', LOCK).where('holder', '=', holder).execute(),
      )
      .catch(() => undefined);
  };

  return {
    /**
     * Rejects with ConfigError if another instance is alive: it renews its lease. Waits for the lease of a dead one.
     * Resolves to false if stopped before.
     */
    async claim(stopping: AbortSignal): Promise<boolean> {
      const first = await take();
      for (let end = first; end !== undefined; end = await take()) {
        if (stopping.aborted) break;
        if (end !== first) {
          throw new ConfigError([
            'UPLOADS=disk supports one instance, and another one runs on this database: stop it first, or store files in S3 (S3_ENDPOINT)',
          ]);
        }
        await delay(POLLED_EVERY_MS, undefined, { signal: stopping }).catch(() => undefined);
      }
      if (stopping.aborted) {
        await drop();
        return false;
      }
      // Requests report a database that does not answer; the lease is renewed later.
      renewal = setInterval(() => void renew().catch(() => undefined), RENEWED_EVERY_MS).unref();
      return true;
    },

    /** The next start need not wait. */
    async release(): Promise<void> {
      clearInterval(renewal);
      await drop();
    },
  };
}
