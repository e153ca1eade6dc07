import { v7 as uuidv7 } from 'uuid';
import type { MailState, OutboxMail } from '../../../entities/index.ts';
import { type Database, sql, type WriteTables } from '../../parts/database/contract.ts';
import { MAX_COUNTED } from '../../telemetry/metrics.ts';
import { traceparent } from '../../telemetry/traces.ts';
import { createLeases } from '../../workers/leases.ts';
import { deleteInBatches } from '../../workers/sweep.ts';
import { inboxOf } from '../users/index.ts';
import { type MailDetail, type MailKind, mailKinds } from './kinds.ts';
import { createMailTurns, type MailTurns, mailTurns } from './turns.ts';

/** After a crash, another process retries a mail this much later. */
const LEASE_MS = 20_000;
const KEPT_MS = 7 * 24 * 60 * 60_000;

/** A kind of mail with its own detail, which has at most 255 characters. */
export type MailContent = {
  [K in MailKind]: { kind: K } & (undefined extends MailDetail<K>
    ? { detail?: Exclude<MailDetail<K>, undefined> }
    : { detail: MailDetail<K> });
}[MailKind];

interface Addressee {
  /** Normalized. A kind with a token may have an address without a user. */
  email: string;
  /** Unknown in a request. */
  userId?: string;
}

export type RequestedMail = MailContent & Addressee;

/** `id`: if the caller has chosen it. `tokenId`: only if the token is already issued. */
export type Mailing = RequestedMail & { id?: string; tokenId?: string | undefined };

/** The request that caused a mail. Its language applies unless the user has chosen another. */
export interface MailRequest {
  /** The administrator who did what the mail reports. */
  actorId?: string;
  /** Where the page of the link leads, for a token that is not issued yet. */
  returnTo?: string | undefined;
  language(): string | undefined;
}

/** A row leased by the worker. `attempts` excludes the current one. */
export type LeasedMail = Pick<
  OutboxMail,
  'id' | 'email' | 'userId' | 'tokenId' | 'detail' | 'attempts' | 'traceparent' | 'language'
> & {
  kind: MailKind;
  expired: boolean;
  /** Whether this process has just queued it, with its token. */
  isNew: boolean;
};

/** The result of an attempt. `unwanted`: the requested address has no account to mail. */
export type Outcome = { state: MailState } | { retryInMs: number } | 'unwanted';

const kindsWithSecret = (Object.keys(mailKinds) as MailKind[]).filter((kind) => mailKinds[kind].isDetailSecret);

/** The detail of a mail; null if it is the hash of a secret. */
export const exportedDetail = sql<
  string | null
>`case when kind in (${sql.join(kindsWithSecret)}) then null else detail end`.as('detail');

/** The rows of `outbox`, by the database clock. Rows stay for `countedMs`, while limits count them. */
export const createOutboxRows = (
  database: Database,
  { countedMs, turnOf = createMailTurns() }: { countedMs: number; turnOf?: MailTurns },
) => ({
  /**
   * With `returnTo` it needs a transaction, because it has two statements. With `isLeased` this process holds the lease
   * from the commit on.
   */
  async insert(
    tables: WriteTables,
    { id = uuidv7(), kind, email, userId, detail, tokenId }: Mailing,
    request: MailRequest,
    { delayMs = 0, isLeased = false }: { delayMs?: number; isLeased?: boolean } = {},
  ): Promise<LeasedMail> {
    const row = {
      id,
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
        turn: turnOf(kind, request.actorId ?? userId ?? inboxOf(email)),
        due_at: sql`${database.now} + ${isLeased ? LEASE_MS : delayMs}`,
        expires_at: sql`${database.now} + ${mailKinds[kind].lifeMs}`,
        created_at: database.now,
        traceparent: row.traceparent,
        language: row.language,
      })
      .execute();
    const { returnTo } = request;
    if (returnTo !== undefined && !tokenId) {
      await tables.insertInto('mail_targets').values({ mail_id: row.id, return_to: returnTo }).execute();
    }
    return { ...row, attempts: 0, expired: false, isNew: true };
  },

  leases: createLeases(database, {
    table: 'outbox',
    key: 'id',
    keyOf: ({ id }: LeasedMail) => id,
    leaseMs: LEASE_MS,
    counter: 'attempts',
    turns: { column: 'turn', values: mailTurns },
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
    await database.write(async (tables) => {
      if (outcome === 'unwanted') return tables.deleteFrom('outbox').where('id', '=', id).execute();
      return tables
        .updateTable('outbox')
        .set('state' in outcome ? outcome : { due_at: sql`${database.now} + ${Math.round(outcome.retryInMs)}` })
        .where('id', '=', id)
        .where('state', '=', 'pending')
        .execute();
    });
  },

  /** The backlog of the mails that are due first, for the metrics. `oldestMs`: the age of the oldest, 0 without one. */
  async backlog(): Promise<{ pending: number; due: number; oldestMs: number }> {
    const row = await database.query((tables) =>
      tables
        .selectFrom(
          tables
            .selectFrom('outbox')
            .select(['due_at', 'created_at'])
            .where('state', '=', 'pending')
            .orderBy('due_at')
            .limit(MAX_COUNTED)
            .as('mails'),
        )
        .select([
          sql<number>`count(*)`.as('pending'),
          sql<number>`coalesce(sum(case when due_at <= ${database.now} then 1 else 0 end), 0)`.as('due'),
          sql<number>`coalesce(${database.now} - min(created_at), 0)`.as('oldestMs'),
        ])
        .executeTakeFirstOrThrow(),
    );
    return { pending: Number(row.pending), due: Number(row.due), oldestMs: Number(row.oldestMs) };
  },

  /**
   * Deletes the mails of a removed user, except those that limits still count. Resolves to whether all are deleted.
   * Mails without a user id belong to the user if they are older than the removal.
   */
  async removeAllOf({ userId, email, begunAt }: { userId: string; email: string; begunAt: number }): Promise<boolean> {
    const ofUser = sql<boolean>`user_id = ${userId}`;
    const toAddress = sql<boolean>`inbox = ${inboxOf(email)} and email = ${email} and user_id is null and created_at <= ${begunAt}`;
    const isCounted = sql<boolean>`token_id is not null and created_at > ${database.now} - ${countedMs}`;
    for (const condition of [ofUser, toAddress]) {
      await deleteInBatches(database, 'outbox', sql`${condition} and not (${isCounted})`);
    }
    const left = await database.query((tables) =>
      tables.selectFrom('outbox').select('id').where(sql<boolean>`(${ofUser}) or (${toAddress})`).executeTakeFirst(),
    );
    return left === undefined;
  },

  /** Deletes finished rows that no limit counts any more. */
  sweep: (): Promise<void> =>
    deleteInBatches(
      database,
      'outbox',
      sql`created_at < ${database.now} - ${Math.max(KEPT_MS, countedMs)} and state <> 'pending'`,
    ),
});
