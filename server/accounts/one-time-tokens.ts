import { randomUUID } from 'node:crypto';
import { type AllTables, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import type { Secrets } from '../secrets.ts';
import { deleteInBatches } from '../workers/sweep.ts';
import { mailKinds, type TokenPurpose } from './mail-kinds.ts';
import { createMailedTokens, hashOf } from './mailed-tokens.ts';
import { createTokenReservations } from './token-reservations.ts';

const KEPT_MS = 7 * 24 * 60 * 60_000;

export interface FoundToken {
  id: string;
  userId: string;
  email: string;
  purpose: TokenPurpose;
  used: boolean;
  expired: boolean;
}

/**
 * Mailed single-use tokens. A caller that uses or replaces a token holds the lock on its user (`lockUser`), so that a token
 * works once, also under a race.
 */
export const createOneTimeTokens = ({ database, secrets }: { database: Database; secrets: Secrets }) => {
  const mailed = createMailedTokens(secrets);
  const derive = (purpose: TokenPurpose, id: string) => mailed.derive(purpose, id);

  const expiryOf = (purpose: TokenPurpose) => sql<number>`${database.now} + ${mailKinds[purpose].lifeMs}`;

  /** Answers the id of the unused token of this purpose, if there is one that has not expired. */
  const renew = async (tables: AllTables, userId: string, purpose: TokenPurpose): Promise<string | undefined> => {
    const found = await tables
      .selectFrom('one_time_tokens')
      .select('id')
      .where('user_id', '=', userId)
      .where('purpose', '=', purpose)
      .where('used', '=', 0)
      .where('expires_at', '>', database.now)
      .executeTakeFirst();
    if (!found) return undefined;
    const expiry = { expires_at: expiryOf(purpose) };
    await tables.updateTable('one_time_tokens').set(expiry).where('id', '=', found.id).execute();
    return found.id;
  };

  return {
    ...createTokenReservations(database),
    /** The token of an id that this process has issued. */
    derive,

    /**
     * Issues a token, which replaces the older one of the same purpose; where mails of that kind share theirs, an unused one
     * gets its whole life again instead. Answers its id, for `derive`.
     */
    async issue(tables: AllTables, userId: string, purpose: TokenPurpose): Promise<string> {
      const shared = mailKinds[purpose].token?.isShared && (await renew(tables, userId, purpose));
      if (shared) return shared;
      await this.revoke(tables, userId, purpose);
      return this.issueFirst(tables, userId, purpose);
    },

    /** The same for a user that this transaction has inserted. */
    async issueFirst(tables: AllTables, userId: string, purpose: TokenPurpose): Promise<string> {
      const id = randomUUID();
      await tables
        .insertInto('one_time_tokens')
        .values({
          id,
          user_id: userId,
          purpose,
          token_hash: hashOf(derive(purpose, id)),
          expires_at: expiryOf(purpose),
          used: 0,
        })
        .execute();
      return id;
    },

    async revoke(tables: AllTables, userId: string, purpose: TokenPurpose): Promise<void> {
      await tables.deleteFrom('one_time_tokens').where('user_id', '=', userId).where('purpose', '=', purpose).execute();
    },

    /** Those of every purpose. */
    async revokeAll(tables: AllTables, userId: string): Promise<void> {
      await tables.deleteFrom('one_time_tokens').where('user_id', '=', userId).execute();
    },

    /** Finds a token, used and expired ones too. */
    async find(tables: ReadTables, purposes: readonly TokenPurpose[], token: string): Promise<FoundToken | undefined> {
      const row = await tables
        .selectFrom('one_time_tokens as token')
        .innerJoin('users as user', 'user.id', 'token.user_id')
        .select(['token.id', 'token.user_id as userId', 'user.email', 'token.purpose', 'token.used'])
        .select(sql<number>`${sql.ref('token.expires_at')} <= ${database.now}`.as('expired'))
        .where('token.token_hash', '=', hashOf(token))
        .where('token.purpose', 'in', purposes)
        .executeTakeFirst();
      if (!row) return undefined;
      const purpose = row.purpose as TokenPurpose;
      return { ...row, purpose, used: row.used === 1, expired: row.expired === 1 };
    },

    /**
     * The token of an id, under the secret that it was issued with. Undefined if it was used or replaced: a newer one
     * deletes it; `foreign` if it was issued with a secret that this process does not have.
     */
    async deriveAgain(
      tables: ReadTables,
      purpose: TokenPurpose,
      id: string,
    ): Promise<{ token: string } | 'foreign' | undefined> {
      const row = await tables
        .selectFrom('one_time_tokens')
        .select(['id', 'used', 'token_hash as hash'])
        .where('id', '=', id)
        .executeTakeFirst();
      if (row?.used !== 0) return undefined;
      return mailed.deriveStored(purpose, row);
    },

    /** Deletes tokens that expired a week ago: until then a second use can be told from a wrong token. */
    sweep: (): Promise<void> =>
      deleteInBatches(database, 'one_time_tokens', sql`expires_at < ${database.now} - ${KEPT_MS}`),

    async markUsed(tables: AllTables, id: string): Promise<void> {
      await tables.updateTable('one_time_tokens').set({ used: 1 }).where('id', '=', id).execute();
    },
  };
};

export type OneTimeTokens = ReturnType<typeof createOneTimeTokens>;
