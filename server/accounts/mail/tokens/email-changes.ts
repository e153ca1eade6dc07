/**
 * Changes of address, by the database clock. A user has at most one requested change, and any number of confirmed
 * changes that can be undone. A confirmed change is never replaced: a thief cannot prevent the undo by another change.
 */
import { randomUUID } from 'node:crypto';
import { hashOf } from '../../../lib/random-token.ts';
import { type AllTables, type Database, type ReadTables, sql } from '../../../parts/database/contract.ts';
import type { Secrets } from '../../../secrets.ts';
import { deleteInBatches } from '../../../workers/sweep.ts';
import type { LockedId } from '../../users/index.ts';
import { type ChangePurpose, mailKinds } from '../kinds.ts';
import { createMailedTokens } from './derivation.ts';

interface FoundChange {
  id: string;
  userId: string;
  /** The requested address. */
  email: string;
  /** The address that it replaced; null before confirmation. */
  former: string | null;
  /** The hash of the requesting browser. */
  browser: string | null;
  /** Milliseconds since 1970. */
  createdAt: number;
  confirmedAt: number | null;
  expired: boolean;
}

/** The given addresses that are reserved: a user gave them up and can still undo the change. */
export const reservedAmong = (
  { now }: Pick<Database, 'now'>,
  tables: ReadTables,
  emails: readonly string[],
): Promise<{ former: string; userId: string }[]> =>
  tables
    .selectFrom('email_changes')
    .select(['former', 'user_id as userId'])
    .where('former', 'in', emails)
    .where('confirmed_at', 'is not', null)
    .where('expires_at', '>', now)
    .$narrowType<{ former: string }>()
    .execute();

const hashColumns = { 'confirm-email': 'confirm_hash', 'email-changed': 'undo_hash' } as const;

/** Stores requested and confirmed changes. */
export const createEmailChangeRows = ({ database, secrets }: { database: Database; secrets: Secrets }) => {
  const mailed = createMailedTokens(secrets);

  /** Whether the address is reserved for a user other than `userId`, who can still undo a change from it. */
  const isReserved = async (tables: ReadTables, email: string, userId?: string): Promise<boolean> => {
    const reserved = await reservedAmong(database, tables, [email]);
    return reserved.some((change) => change.userId !== userId);
  };

  /** Whether the address is unavailable to the user: proven by or reserved for another user. */
  const isTaken = async (tables: ReadTables, email: string, userId: string): Promise<boolean> => {
    const owner = await tables
      .selectFrom('users')
      .select('id')
      .where('email', '=', email)
      .where('id', '<>', userId)
      .where('email_verified', '=', 1)
      .executeTakeFirst();
    return owner !== undefined || isReserved(tables, email, userId);
  };

  /** Deletes the mail requests that no worker has admitted yet. */
  const forgetRequests = async (tables: AllTables, userId: string): Promise<void> => {
    await tables
      .deleteFrom('outbox')
      .where('user_id', '=', userId)
      .where('kind', '=', 'confirm-email')
      .where('state', '=', 'pending')
      .where('token_id', 'is', null)
      .execute();
  };

  const forgetRows = async (tables: AllTables, userId: string): Promise<void> => {
    await tables.deleteFrom('email_changes').where('user_id', '=', userId).where('confirmed_at', 'is', null).execute();
  };

  return {
    isReserved,

    /**
     * Stores a requested change and replaces the previous request. `browser` is the hash of the requesting browser.
     * Resolves to its id.
     */
    async ask(
      tables: AllTables,
      { id: userId }: LockedId,
      { email, browser }: { email: string; browser: string | null },
    ): Promise<string> {
      const id = randomUUID();
      await forgetRows(tables, userId);
      await tables
        .insertInto('email_changes')
        .values({
          id,
          user_id: userId,
          email,
          browser,
          confirm_hash: hashOf(mailed.derive('confirm-email', id)),
          undo_hash: hashOf(mailed.derive('email-changed', id)),
          created_at: database.now,
          expires_at: sql`${database.now} + ${mailKinds['confirm-email'].lifeMs}`,
        })
        .execute();
      return id;
    },

    /** Marks the change as confirmed. From now on it can be undone. */
    async confirm(tables: AllTables, { id: userId }: LockedId, id: string, former: string): Promise<void> {
      await tables
        .updateTable('email_changes')
        .set({
          former,
          confirmed_at: database.now,
          expires_at: sql`${database.now} + ${mailKinds['email-changed'].lifeMs}`,
        })
        .where('id', '=', id)
        .where('user_id', '=', userId)
        .execute();
    },

    /** The former addresses of changes that can still be undone. */
    async listFormer(tables: ReadTables, userId: string): Promise<string[]> {
      const changes = await tables
        .selectFrom('email_changes')
        .select('former')
        .where('user_id', '=', userId)
        .where('former', 'is not', null)
        .where('expires_at', '>', database.now)
        .$narrowType<{ former: string }>()
        .execute();
      return changes.map(({ former }) => former);
    },

    /** Deletes the user's requested change, even if its mail is not yet prepared. */
    async deleteRequested(tables: AllTables, { id }: LockedId): Promise<void> {
      await forgetRequests(tables, id);
      await forgetRows(tables, id);
    },

    /** Deletes an undone change, and all changes made or requested since. */
    async forgetSince(tables: AllTables, { id: userId }: LockedId, { confirmedAt }: FoundChange): Promise<void> {
      await forgetRequests(tables, userId);
      await tables
        .deleteFrom('email_changes')
        .where('user_id', '=', userId)
        .where((eb) => eb.or([eb('confirmed_at', 'is', null), eb('confirmed_at', '>=', confirmedAt)]))
        .execute();
    },

    /** Finds a change by a token. The token for undoing is valid only after confirmation. */
    async find(tables: ReadTables, purpose: ChangePurpose, token: string): Promise<FoundChange | undefined> {
      const row = await tables
        .selectFrom('email_changes')
        .select(['id', 'user_id as userId', 'email', 'former', 'browser', 'created_at as createdAt'])
        .select(['confirmed_at as confirmedAt', sql<number>`expires_at <= ${database.now}`.as('expired')])
        .where(hashColumns[purpose], '=', hashOf(token))
        .$if(purpose === 'email-changed', (changes) => changes.where('confirmed_at', 'is not', null))
        .executeTakeFirst();
      return row && { ...row, expired: row.expired === 1 };
    },

    /**
     * The token of a mail, by the secret that issued it. Undefined if void; `otherKey` if this process does
     * not have that secret; `taken` if the address belongs to another user.
     */
    async deriveAgain(
      tables: ReadTables,
      purpose: ChangePurpose,
      id: string,
    ): Promise<{ token: string } | 'otherKey' | 'taken' | undefined> {
      const row = await tables
        .selectFrom('email_changes')
        .select(['id', 'user_id', 'email', 'confirmed_at'])
        .select(`${hashColumns[purpose]} as hash`)
        .where('id', '=', id)
        .executeTakeFirst();
      if (!row) return undefined;
      if (purpose === 'email-changed') return mailed.deriveStored(purpose, row);
      if (row.confirmed_at !== null) return undefined;
      return (await isTaken(tables, row.email, row.user_id)) ? 'taken' : mailed.deriveStored(purpose, row);
    },

    /** Deletes changes that can no longer be confirmed or undone. */
    sweep: (): Promise<void> => deleteInBatches(database, 'email_changes', sql`expires_at < ${database.now}`),
  };
};

export type EmailChangeRows = ReturnType<typeof createEmailChangeRows>;
