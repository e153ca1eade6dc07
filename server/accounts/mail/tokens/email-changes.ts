import { randomUUID } from 'node:crypto';
import { type AllTables, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import type { Secrets } from '../secrets.ts';
import { deleteInBatches } from '../workers/sweep.ts';
import { type ChangePurpose, mailKinds } from './mail-kinds.ts';
import { createMailedTokens, hashOf } from './mailed-tokens.ts';

export interface FoundChange {
  id: string;
  userId: string;
  /** The address asked for. */
  email: string;
  /** The address that it replaced; null until it is confirmed. */
  former: string | null;
  /** Milliseconds since 1970. */
  createdAt: number;
  confirmedAt: number | null;
  expired: boolean;
}

/** Those of the addresses that users gave up so lately that the changes can be undone: each is kept for its user. */
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

/**
 * Changes of address, by the database's clock. A user has at most one that is asked for, and any number that were made and
 * can be undone: none replaces another, so that a thief cannot undo the undoing by a further change. All but `find` is
 * called under the lock on the user.
 */
export const createEmailChangeRows = ({ database, secrets }: { database: Database; secrets: Secrets }) => {
  const mailed = createMailedTokens(secrets);

  /** Whether a user, another than `userId`, gave up this address so lately that the change can be undone: it is kept for that user. */
  const isReserved = async (tables: ReadTables, email: string, userId?: string): Promise<boolean> => {
    const reserved = await reservedAmong(database, tables, [email]);
    return reserved.some((change) => change.userId !== userId);
  };

  /** The requests for a mail that no worker has admitted yet. */
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

    /** Whether an address is out of the user's reach: another has proven it, or may come back to it. */
    async isTaken(tables: ReadTables, email: string, userId: string): Promise<boolean> {
      const owner = await tables
        .selectFrom('users')
        .select('id')
        .where('email', '=', email)
        .where('id', '<>', userId)
        .where('email_verified', '=', 1)
        .executeTakeFirst();
      return owner !== undefined || isReserved(tables, email, userId);
    },

    /** A change that is asked for; it replaces the one that was asked for before. Answers its id. */
    async ask(tables: AllTables, userId: string, email: string): Promise<string> {
      const id = randomUUID();
      await forgetRows(tables, userId);
      await tables
        .insertInto('email_changes')
        .values({
          id,
          user_id: userId,
          email,
          confirm_hash: hashOf(mailed.derive('confirm-email', id)),
          undo_hash: hashOf(mailed.derive('email-changed', id)),
          created_at: database.now,
          expires_at: sql`${database.now} + ${mailKinds['confirm-email'].lifeMs}`,
        })
        .execute();
      return id;
    },

    /** The change has been made; from now on it can be undone. */
    async confirm(tables: AllTables, id: string, former: string): Promise<void> {
      await tables
        .updateTable('email_changes')
        .set({
          former,
          confirmed_at: database.now,
          expires_at: sql`${database.now} + ${mailKinds['email-changed'].lifeMs}`,
        })
        .where('id', '=', id)
        .execute();
    },

    /** The changes that can be undone now: by whom, and until when. */
    listUndos: (tables: ReadTables, userId: string): Promise<{ former: string; expiresAt: number }[]> =>
      tables
        .selectFrom('email_changes')
        .select(['former', 'expires_at as expiresAt'])
        .where('user_id', '=', userId)
        .where('former', 'is not', null)
        .where('expires_at', '>', database.now)
        .$narrowType<{ former: string }>()
        .execute(),

    /** Forgets the change that the user has asked for and not confirmed, also where its mail was not prepared yet. */
    async forgetAsked(tables: AllTables, userId: string): Promise<void> {
      await forgetRequests(tables, userId);
      await forgetRows(tables, userId);
    },

    /** Forgets a change that was undone, and all that the user has made or asked for since. */
    async forgetSince(tables: AllTables, { userId, confirmedAt }: FoundChange): Promise<void> {
      await forgetRequests(tables, userId);
      await tables
        .deleteFrom('email_changes')
        .where('user_id', '=', userId)
        .where((eb) => eb.or([eb('confirmed_at', 'is', null), eb('confirmed_at', '>=', confirmedAt)]))
        .execute();
    },

    /** Finds a change by one of its tokens: that which undoes it only once it was made. */
    async find(tables: ReadTables, purpose: ChangePurpose, token: string): Promise<FoundChange | undefined> {
      const row = await tables
        .selectFrom('email_changes')
        .select(['id', 'user_id as userId', 'email', 'former', 'created_at as createdAt'])
        .select(['confirmed_at as confirmedAt', sql<number>`expires_at <= ${database.now}`.as('expired')])
        .where(hashColumns[purpose], '=', hashOf(token))
        .$if(purpose === 'email-changed', (changes) => changes.where('confirmed_at', 'is not', null))
        .executeTakeFirst();
      return row && { ...row, expired: row.expired === 1 };
    },

    /**
     * The token for a mail, under the secret that it was issued with. Undefined once it is of no use; `foreign` if this
     * process does not have that secret; `taken` where the mail goes to an address that is another's.
     */
    async deriveAgain(
      tables: ReadTables,
      purpose: ChangePurpose,
      id: string,
    ): Promise<{ token: string } | 'foreign' | 'taken' | undefined> {
      const row = await tables
        .selectFrom('email_changes')
        .select(['id', 'user_id', 'email', 'confirmed_at'])
        .select(`${hashColumns[purpose]} as hash`)
        .where('id', '=', id)
        .executeTakeFirst();
      if (!row) return undefined;
      if (purpose === 'email-changed') return mailed.deriveStored(purpose, row);
      if (row.confirmed_at !== null) return undefined;
      return (await this.isTaken(tables, row.email, row.user_id)) ? 'taken' : mailed.deriveStored(purpose, row);
    },

    /** Deletes what can neither be confirmed nor undone any more. */
    sweep: (): Promise<void> => deleteInBatches(database, 'email_changes', sql`expires_at < ${database.now}`),
  };
};

export type EmailChangeRows = ReturnType<typeof createEmailChangeRows>;
