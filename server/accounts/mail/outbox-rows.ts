import { v7 as uuidv7 } from 'uuid';
import type { MailState, OutboxMail } from '../../entities/index.ts';
import { type Database, sql, type WriteTables } from '../parts/database/contract.ts';
import { traceparent } from '../telemetry/traces.ts';
import { createLeases } from '../workers/leases.ts';
import { deleteInBatches } from '../workers/sweep.ts';
import { type MailKind, mailKinds } from './mail-kinds.ts';
import { inboxOf } from './text-rules.ts';

/** After a crash another process retries a mail this much later. */
const LEASE_MS = 20_000;
const KEPT_MS = 7 * 24 * 60 * 60_000;

export interface Mailing {
  kind: MailKind;
  /** Normalized. For a kind with a token there may be no user of this address. */
  email: string;
  /** Unknown in a request. */
  userId?: string;
  /** A value that the text of this kind contains, at most 255 characters. */
  detail?: string;
  /** Of its token, where that was issued already. */
  tokenId?: string | undefined;
}

/** What a mail answers. It is in this language, unless the user has chosen another. */
export interface MailRequest {
  language(): string | undefined;
}

/** A row as the worker takes it. `attempts` does not count the one that begins. */
export type LeasedMail = Pick<
  OutboxMail,
  'id' | 'email' | 'userId' | 'tokenId' | 'detail' | 'attempts' | 'traceparent' | 'language'
> & {
  kind: MailKind;
  expired: boolean;
  /** Whether it was queued just now by this process, with its token. */
  isNew: boolean;
};

/** The result of an attempt: `unwanted` is a request for an address that has no account to mail. */
export type Outcome = { state: MailState } | { retryInMs: number } | 'unwanted';

/** The rows of `outbox`, by the database's clock. They are kept for `countedMs`, in which the limits count them. */
export const createOutboxRows = (database: Database, { countedMs }: { countedMs: number }) => ({
  /**
   * Must be the only statement of a `write`, or part of a transaction. `isLeased` inserts it as this process's to deliver,
   * who has it when the transaction is committed.
   */
  async insert(
    tables: WriteTables,
    { kind, email, userId, detail, tokenId }: Mailing,
    request: MailRequest,
    { delayMs = 0, isLeased = false }: { delayMs?: number; isLeased?: boolean } = {},
  ): Promise<LeasedMail> {
    const row = {
      id: uuidv7(),
      kind,
      email,
      detail: detail ?? null,
      userId: userId ?? null,
      tokenId: tokenId ?? null,
      traceparent: traceparent() ?? null,
      language: request.language() ?? null,
    };
    await tables
      .insertInto('outbox')
      .values({
        id: row.id,
        kind,
        email,
        inbox: inboxOf(email),
        user_id: row.userId,
        token_id: row.tokenId,
        detail: row.detail,
        state: 'pending',
        attempts: isLeased ? 1 : 0,
        due_at: sql`${database.now} + ${isLeased ? LEASE_MS : delayMs}`,
        expires_at: sql`${database.now} + ${mailKinds[kind].lifeMs}`,
        created_at: database.now,
        traceparent: row.traceparent,
        language: row.language,
      })
      .execute();
    return { ...row, attempts: 0, expired: false, isNew: true };
  },

  leases: createLeases(database, {
    table: 'outbox',
    key: 'id',
    keyOf: ({ id }: LeasedMail) => id,
    leaseMs: LEASE_MS,
    counter: 'attempts',
    select: (tables) =>
      tables
        .selectFrom('outbox')
        .select([
          'id',
          'kind',
          'email',
          'user_id as userId',
          'token_id as tokenId',
          'detail',
          'attempts',
          'traceparent',
          'language',
        ])
        .select(sql<number>`expires_at <= ${database.now}`.as('expired'))
        .where('state', '=', 'pending'),
    toRow: (row) => ({ ...row, kind: row.kind as MailKind, expired: row.expired === 1, isNew: false }),
  }),

  async settle({ id }: LeasedMail, outcome: Outcome): Promise<void> {
    const statement = async (tables: WriteTables, latest: number): Promise<true | undefined> => {
      const isInTime = sql<boolean>`${database.now} <= ${latest}`;
      if (outcome === 'unwanted') {
        const { numDeletedRows } = await tables
          .deleteFrom('outbox')
          .where('id', '=', id)
          .where(isInTime)
          .executeTakeFirst();
        return numDeletedRows === 1n || undefined;
      }
      const { numUpdatedRows } = await tables
        .updateTable('outbox')
        .set('state' in outcome ? outcome : { due_at: sql`${database.now} + ${Math.round(outcome.retryInMs)}` })
        .where('id', '=', id)
        .where('state', '=', 'pending')
        .where(isInTime)
        .executeTakeFirst();
      return numUpdatedRows === 1n || undefined;
    };
    await database.attempt<unknown>({
      statement,
      otherwise: (_em, tables) => statement(tables, Number.MAX_SAFE_INTEGER),
    });
  },

  /** What waits, for the metrics. `oldestMs`: the age of the oldest, 0 without one. */
  async backlog(): Promise<{ pending: number; due: number; oldestMs: number }> {
    const row = await database.query((tables) =>
      tables
        .selectFrom('outbox')
        .select([
          sql<number>`count(*)`.as('pending'),
          sql<number>`coalesce(sum(case when due_at <= ${database.now} then 1 else 0 end), 0)`.as('due'),
          sql<number>`coalesce(${database.now} - min(created_at), 0)`.as('oldestMs'),
        ])
        .where('state', '=', 'pending')
        .executeTakeFirstOrThrow(),
    );
    return { pending: Number(row.pending), due: Number(row.due), oldestMs: Number(row.oldestMs) };
  },

  /**
   * Deletes the mails of a removed user, those that limits still count excepted. Answers whether none is left. A mail to the
   * address alone is the user's if it is from before the removal.
   */
  async removeAllOf({ userId, email, begunAt }: { userId: string; email: string; begunAt: number }): Promise<boolean> {
    const ofUser = sql<boolean>`user_id = ${userId}`;
    const toAddress = sql<boolean>`inbox = ${inboxOf(email)} and email = ${email} and user_id is null and created_at <= ${begunAt}`;
    const isCounted = sql<boolean>`token_id is not null and created_at > ${database.now} - ${countedMs}`;
    for (const theirs of [ofUser, toAddress]) {
      await deleteInBatches(database, 'outbox', sql`${theirs} and not (${isCounted})`);
    }
    const left = await database.query((tables) =>
      tables.selectFrom('outbox').select('id').where(sql<boolean>`(${ofUser}) or (${toAddress})`).executeTakeFirst(),
    );
    return left === undefined;
  },

  /** Deletes settled rows that no limit counts any more. */
  sweep: (): Promise<void> =>
    deleteInBatches(
      database,
      'outbox',
      sql`created_at < ${database.now} - ${Math.max(KEPT_MS, countedMs)} and state <> 'pending'`,
    ),
});
