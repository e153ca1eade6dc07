import type { SelectQueryBuilder } from 'kysely';
import { type ReadTables, sql, type Tables } from '../parts/database/contract.ts';
import { MAX_COUNTED } from '../telemetry/metrics.ts';

/** The number of uploads that a query selects, up to `most`. */
export async function countUpTo(
  tables: Pick<ReadTables, 'selectFrom'>,
  uploads: SelectQueryBuilder<Tables, 'uploads', object>,
  most = MAX_COUNTED,
): Promise<number> {
  const { rows } = await tables
    .selectFrom(uploads.select(sql.lit(1).as('one')).limit(most).as('counted'))
    .select(sql<number>`count(*)`.as('rows'))
    .executeTakeFirstOrThrow();
  return Number(rows);
}
