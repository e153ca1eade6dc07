import { Kysely } from 'kysely';
import { createOutage } from '../../lib/outage.ts';
import type { Log } from '../../telemetry/log.ts';
import { withinDeadline } from '../deadline.ts';
import type { ReadTables } from './contract.ts';
import type { Limits } from './mysql-session.ts';
import type { Tables } from './tables.ts';

/** A slower replica is skipped: the primary can still answer in time. */
const DEADLINE = { ms: 1000, what: 'a database replica' };
const PROBE_EVERY_MS = 3000;

type Read<T> = (tables: ReadTables) => Promise<T>;

interface Replicas {
  /** Queries the replicas in turn; falls back to `primary` if the replica fails or none is usable. */
  query<T>(read: Read<T>, primary: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Replicas may lag slightly. One that fails is skipped until the query that failed succeeds on it again. */
export async function openReplicas(
  urls: readonly string[],
  { limits, log }: { limits: Limits; log?: Log | undefined },
): Promise<Replicas> {
  const { mysqlDialect } = await import('./mysql-dialect.ts');
  const closing = new AbortController();
  const replicas = urls.map((url) => {
    const tables = new Kysely<Tables>({ dialect: mysqlDialect(url, { limits, decides: false }) });
    return createReplica(tables, { name: new URL(url).host, closing: closing.signal, log });
  });
  let turn = 0;

  return {
    async query(read, primary) {
      const usable = replicas.filter((replica) => replica.isUsable);
      const replica = usable[turn++ % usable.length];
      if (!replica) return primary();
      try {
        return await replica.query(read);
      } catch {
        // The replica's outage is logged.
        return primary();
      }
    },

    async close() {
      closing.abort();
      await Promise.all(replicas.map((replica) => replica.close()));
    },
  };
}

function createReplica(
  tables: Kysely<Tables>,
  { name, closing, log }: { name: string; closing: AbortSignal; log?: Log | undefined },
) {
  let probing = false;
  const outage = createOutage({
    began: (error) => log?.warn({ err: error, replica: name }, 'a database replica failed, the primary answers'),
    ended: () => log?.info({ replica: name }, 'a database replica is back'),
  });

  // Repeats the read that failed: a replica may lack exactly what it needs, such as a column of the latest migration.
  const probe = async (read: Read<unknown>) => {
    try {
      await withinDeadline(DEADLINE, () => read(tables));
      probing = false;
      outage.succeeded();
    } catch {
      probeLater(read);
    }
  };
  const probeLater = (read: Read<unknown>) => {
    if (!closing.aborted) setTimeout(probe, PROBE_EVERY_MS, read).unref();
  };

  return {
    get isUsable() {
      return !probing;
    },

    async query<T>(read: Read<T>): Promise<T> {
      try {
        return await withinDeadline(DEADLINE, () => read(tables));
      } catch (error) {
        outage.failed(error);
        if (!probing) probeLater(read);
        probing = true;
        throw error;
      }
    },

    // A connection that breaks while closing is closed.
    close: () => tables.destroy().catch(() => undefined),
  };
}
