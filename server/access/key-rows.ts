import type { AccessKey } from '../../entities/index.ts';
import {
  type Account,
  type AccountRow,
  accountColumns,
  type CustomFields,
  toAccount,
} from '../accounts/users/index.ts';
import { inBatches } from '../lib/batch-loader.ts';
import { columnsOf, type Database, prepared, sql } from '../parts/database/contract.ts';
import { ignored } from '../telemetry/background.ts';

/** Maximum ids per statement. */
const MAX_IDS = 100;
/** A use is recorded at most once in this time. */
const RECORDED_MS = 60_000;
/** This limit leaves connections to requests. */
const MAX_RECORDED = 3;

interface KeyRow extends Pick<AccessKey, 'secretHash' | 'scopes' | 'expiresAt'> {
  readonly keyId: string;
  readonly keyCreatedAt: number;
  /** 1 if no use was recorded lately. */
  readonly isUseDue: number;
}

/** A valid key and its user. Times in milliseconds since 1970. */
interface FoundKey extends KeyRow {
  user: Account;
}

const ownColumns = accountColumns.map((column) => `users.${column}` as const);
const keyColumns = columnsOf(['secretHash', 'scopes', 'expiresAt'] as const).map(
  (column) => `access_keys.${column}` as const,
);

const toFound = ({ keyId, secretHash, scopes, expiresAt, keyCreatedAt, isUseDue, ...row }: AccountRow & KeyRow) => ({
  keyId,
  secretHash,
  scopes,
  expiresAt,
  keyCreatedAt,
  isUseDue,
  user: toAccount(row),
});

/** The reads and writes behind each request with a key, by the database clock. */
export const createKeyRows = (database: Database, { columns }: Pick<CustomFields, 'columns'>) => {
  const { now } = database;
  const due = sql<boolean>`(last_used_at is null or last_used_at <= ${now} - ${sql.lit(RECORDED_MS)})`;
  const isUseDue = sql<number>`case when ${due} then 1 else 0 end`.as('isUseDue');

  const rowsByIds = prepared<AccountRow & KeyRow>();
  const readAll = async (ids: readonly string[]): Promise<(FoundKey | undefined)[]> => {
    const rows = await database.query((tables) =>
      rowsByIds(tables, {
        shape: ids.length,
        build: () =>
          tables
            .selectFrom('access_keys')
            .innerJoin('users', 'users.id', 'access_keys.user_id')
            .select(ownColumns)
            .select(columns)
            .select(keyColumns)
            .select(['access_keys.id as keyId', 'access_keys.created_at as keyCreatedAt', isUseDue])
            .where('access_keys.id', 'in', ids)
            .whereRef('access_keys.epoch', '=', 'users.session_epoch')
            .where(sql<boolean>`(expires_at is null or expires_at > ${now})`)
            .where('users.deleted_at', 'is', null)
            .where('users.blocked_at', 'is', null),
        parameters: ids,
      }),
    );
    const found = new Map(rows.map((row) => [row.keyId, toFound(row)]));
    return ids.map((id) => found.get(id));
  };

  const inRecord = new Set<string>();

  return {
    /** Undefined for a key that is unknown, expired or void, or of a user who may not log in. */
    find: inBatches(readAll, { most: MAX_IDS }),

    /** Does not wait. A later use retries a failed or skipped record. */
    recordUse(id: string): void {
      if (inRecord.has(id) || inRecord.size >= MAX_RECORDED) return;
      inRecord.add(id);
      database
        .write(
          (tables) =>
            tables.updateTable('access_keys').set({ last_used_at: now }).where('id', '=', id).where(due).execute(),
          id,
        )
        .catch(ignored('record_key_use'))
        .finally(() => inRecord.delete(id));
    },
  };
};
