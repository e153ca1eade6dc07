import type { RawBuilder } from 'kysely';
import { v7 as uuidv7 } from 'uuid';
import type { MailKind, MailState, OutboxMail } from '../../entities/index.ts';
import { type Database, sql, type WriteTables } from '../parts/database/contract.ts';
import { isTokenPurpose, TOKEN_LIFE_MS } from './one-time-tokens.ts';
import { inboxOf } from './text-rules.ts';

/** After a crash a mail waits this long for another process. A delivery that takes longer renews its lease. */
const LEASE_MS = 20_000;
const SWEEP_BATCH = 1000;
const KEPT_MS = 7 * 24 * 60 * 60_000;
const DAY_MS = 24 * 60 * 60_000;

export interface Mailing {
  kind: MailKind;
  /** Normalized. For a kind with a token there may be no user of this address. */
  email: string;
  /** Unknown while it is a request. */
  userId?: string;
  /** What the text of this kind needs to know, at most 255 characters. */
  detail?: string;
}

export type DueMail = Pick<OutboxMail, 'id' | 'kind' | 'email' | 'userId' | 'tokenId' | 'detail' | 'attempts'> & {
  expired: boolean;
};

/** What becomes of a row: `unwanted` is a request that no account waits for. */
export type Outcome = { state: MailState } | { retryInMs: number } | 'unwanted';

/** The rows of `outbox`. Times are by the database's clock. `countedMs`: how long rows are counted for a limit, and so kept. */
export const createOutboxRows = (database: Database, { countedMs }: { countedMs: number }) => ({
  /** Must be the only statement of a `write`, or part of a transaction. */
  async insert(tables: WriteTables, { kind, email, userId, detail }: Mailing, { delayMs = 0 } = {}): Promise<void> {
    await tables
      .insertInto('outbox')
      .values({
        id: uuidv7(),
        kind,
        email,
        inbox: inboxOf(email),
        user_id: userId ?? null,
        token_id: null,
        detail: detail ?? null,
        state: 'pending',
        attempts: 0,
        due_at: sql`${database.now} + ${delayMs}`,
        expires_at: sql`${database.now} + ${lifeOf(kind)}`,
        created_at: database.now,
      })
      .execute();
  },

  lease: (most: number): Promise<DueMail[]> =>
    database.transaction(async (_em, tables) => {
      const due = await tables
        .selectFrom('outbox')
        .select(['id', 'kind', 'email', 'user_id as userId', 'token_id as tokenId', 'detail', 'attempts'])
        .select(sql<number>`expires_at <= ${database.now}`.as('expired'))
        .where('state', '=', 'pending')
        .where('due_at', '<=', database.now)
        .orderBy('due_at')
        .limit(most)
        .modifyEnd(database.skipLocked)
        .execute();
      const ids = due.map(({ id }) => id);
      if (ids.length > 0) {
        await tables
          .updateTable('outbox')
          .set({ due_at: sql`${database.now} + ${LEASE_MS}`, attempts: sql`attempts + 1` })
          .where('id', 'in', ids)
          .execute();
      }
      return due.map((row) => ({ ...row, expired: row.expired === 1 }));
    }),

  /** Leaves alone what has been settled meanwhile, also a retry that is due later than a lease would end. */
  async renew(mails: DueMail[]): Promise<void> {
    const ids = mails.map(({ id }) => id);
    const end = sql<number>`${database.now} + ${LEASE_MS}`;
    await database.write((tables) =>
      tables
        .updateTable('outbox')
        .set({ due_at: end })
        .where('id', 'in', ids)
        .where('state', '=', 'pending')
        .where('due_at', '<', end)
        .execute(),
    );
  },

  async settle({ id }: DueMail, outcome: Outcome): Promise<void> {
    await database.write<unknown>((tables) => {
      if (outcome === 'unwanted') return tables.deleteFrom('outbox').where('id', '=', id).execute();
      return tables
        .updateTable('outbox')
        .set('state' in outcome ? outcome : { due_at: sql`${database.now} + ${Math.round(outcome.retryInMs)}` })
        .where('id', '=', id)
        .where('state', '=', 'pending')
        .execute();
    });
  },

  /** Deletes what is settled and no longer counted, and tokens that expired long ago. */
  async sweep(): Promise<void> {
    const before = (ms: number) => sql<number>`${database.now} - ${ms}`;
    const countedFrom = before(Math.max(KEPT_MS, countedMs));
    await deleteInBatches(database, 'outbox', sql`created_at < ${countedFrom} and state <> 'pending'`);
    await deleteInBatches(database, 'one_time_tokens', sql`expires_at < ${before(KEPT_MS)}`);
  },
});

/** A batch a transaction: any backlog goes, however little time one has. */
async function deleteInBatches(database: Database, table: 'outbox' | 'one_time_tokens', isOld: RawBuilder<boolean>) {
  const deleteBatch = () =>
    database.transaction(async (_em, tables) => {
      const rows = await tables.selectFrom(table).select('id').where(isOld).limit(SWEEP_BATCH).execute();
      const ids = rows.map(({ id }) => id);
      if (ids.length > 0) await tables.deleteFrom(table).where('id', 'in', ids).execute();
      return ids.length;
    });
  while ((await deleteBatch()) === SWEEP_BATCH);
}

/** How long a mail of this kind is of use, in milliseconds. */
const lifeOf = (kind: MailKind): number => (isTokenPurpose(kind) ? TOKEN_LIFE_MS[kind] : DAY_MS);
