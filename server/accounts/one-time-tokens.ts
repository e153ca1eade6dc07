import { createHash, randomUUID } from 'node:crypto';
import { type AllTables, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import type { Secrets } from '../secrets.ts';
import { mailKinds, type TokenPurpose } from './mail-kinds.ts';
import { createTokenReservations } from './token-reservations.ts';

export interface FoundToken {
  id: string;
  userId: string;
  email: string;
  used: boolean;
  expired: boolean;
}

/** Whether a text has the form of a mailed token; any other text needs no query. */
export const isMailedToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

const hashOf = (token: string) => createHash('sha256').update(token).digest('base64url');

/**
 * Mailed single-use tokens. A token is the HMAC of its row's random id under the application secret: it can be derived
 * when its mail is sent, and neither the table nor the mail queue contains it. A caller that uses or replaces a
 * token holds the lock on its user (`lockUser`), so that a token works once, also under a race.
 */
export const createOneTimeTokens = ({ database, secrets }: { database: Database; secrets: Secrets }) => {
  const deriveAll = (purpose: TokenPurpose, id: string) => secrets.derive(`one-time-token:${purpose}:${id}`);
  const derive = (purpose: TokenPurpose, id: string) => deriveAll(purpose, id)[0];

  return {
    ...createTokenReservations(database),
    /** The token of an id that this process has issued. */
    derive,

    /** Issues a token, which replaces the older one of the same purpose. Answers its id, for `derive`. */
    async issue(tables: AllTables, userId: string, purpose: TokenPurpose): Promise<string> {
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
          expires_at: sql`${database.now} + ${mailKinds[purpose].lifeMs}`,
          used: 0,
        })
        .execute();
      return id;
    },

    async revoke(tables: AllTables, userId: string, purpose: TokenPurpose): Promise<void> {
      await tables.deleteFrom('one_time_tokens').where('user_id', '=', userId).where('purpose', '=', purpose).execute();
    },

    /** Finds a token, used and expired ones too. */
    async find(tables: ReadTables, purpose: TokenPurpose, token: string): Promise<FoundToken | undefined> {
      const row = await tables
        .selectFrom('one_time_tokens as token')
        .innerJoin('users as user', 'user.id', 'token.user_id')
        .select(['token.id', 'token.user_id as userId', 'user.email', 'token.used'])
        .select(sql<number>`${sql.ref('token.expires_at')} <= ${database.now}`.as('expired'))
        .where('token.token_hash', '=', hashOf(token))
        .where('token.purpose', '=', purpose)
        .executeTakeFirst();
      return row && { ...row, used: row.used === 1, expired: row.expired === 1 };
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
        .select(['used', 'token_hash as hash'])
        .where('id', '=', id)
        .executeTakeFirst();
      if (row?.used !== 0) return undefined;
      const token = deriveAll(purpose, id).find((each) => hashOf(each) === row.hash);
      return token === undefined ? 'foreign' : { token };
    },

    async markUsed(tables: AllTables, id: string): Promise<void> {
      await tables.updateTable('one_time_tokens').set({ used: 1 }).where('id', '=', id).execute();
    },
  };
};

export type OneTimeTokens = ReturnType<typeof createOneTimeTokens>;
