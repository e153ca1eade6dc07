import { createHash, createHmac, randomUUID } from 'node:crypto';
import type { TokenPurpose } from '../../entities/index.ts';
import { type AllTables, type Database, type ReadTables, sql, type WriteTables } from '../parts/database/contract.ts';

const HOUR_MS = 60 * 60 * 1000;

/** Longer than a hash and a transaction can take; after a crash the token can be tried again once this time is over. */
const RESERVED_MS = 15_000;

export const TOKEN_LIFE_MS: Record<TokenPurpose, number> = {
  'verify-email': 24 * HOUR_MS,
  'reset-password': HOUR_MS,
};

export const isTokenPurpose = (kind: string): kind is TokenPurpose => Object.hasOwn(TOKEN_LIFE_MS, kind);

export interface FoundToken {
  id: string;
  userId: string;
  email: string;
  used: boolean;
  expired: boolean;
}

/** Whether a text has the shape of a mailed token; any other text needs no look-up in the table. */
export const isMailedToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

const hashOf = (token: string) => createHash('sha256').update(token).digest('base64url');

/**
 * Mailed single-use tokens. A token is the HMAC of its row's random id under the application secret: it can be made
 * again when its mail is sent, yet neither the table nor the mail queue holds it. A caller that uses or replaces a
 * token holds the lock on its user (`lockUser`), so that a token works once, also under a race.
 */
export const createOneTimeTokens = ({ database, secret }: { database: Database; secret: string }) => {
  const derive = (purpose: TokenPurpose, id: string) =>
    createHmac('sha256', secret).update(`one-time-token:${purpose}:${id}`).digest('base64url');

  return {
    derive,

    /**
     * Issues a token, which replaces the older one of the same purpose. Answers the id that the token is derived from.
     */
    async issue(tables: AllTables, userId: string, purpose: TokenPurpose): Promise<string> {
      const id = randomUUID();
      await this.revoke(tables, userId, purpose);
      await tables
        .insertInto('one_time_tokens')
        .values({
          id,
          user_id: userId,
          purpose,
          token_hash: hashOf(derive(purpose, id)),
          expires_at: sql`${database.now} + ${TOKEN_LIFE_MS[purpose]}`,
          used: 0,
        })
        .execute();
      return id;
    },

    async revoke(tables: AllTables, userId: string, purpose: TokenPurpose): Promise<void> {
      await tables.deleteFrom('one_time_tokens').where('user_id', '=', userId).where('purpose', '=', purpose).execute();
    },

    /** The token's current state, also when it is used or expired; undefined when there is no such token. */
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

    /** Whether the token of this id is unused and still the newest: a newer one deletes it. */
    async isCurrent(tables: ReadTables, id: string): Promise<boolean> {
      const row = await tables.selectFrom('one_time_tokens').select('used').where('id', '=', id).executeTakeFirst();
      return row?.used === 0;
    },

    /**
     * Reserves a token, for the time that the work may take, for one of all callers that try it at once: one token buys
     * one password hash at a time. Answers whether the caller has it.
     */
    async reserve(tables: WriteTables, id: string): Promise<boolean> {
      const { numUpdatedRows } = await tables
        .updateTable('one_time_tokens')
        .set({ reserved_until: sql`${database.now} + ${RESERVED_MS}` })
        .where('id', '=', id)
        .where('used', '=', 0)
        .where((eb) => eb.or([eb('reserved_until', 'is', null), eb('reserved_until', '<=', database.now)]))
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    async release(tables: WriteTables, id: string): Promise<void> {
      await tables.updateTable('one_time_tokens').set({ reserved_until: null }).where('id', '=', id).execute();
    },

    async markUsed(tables: AllTables, id: string): Promise<void> {
      await tables.updateTable('one_time_tokens').set({ used: 1 }).where('id', '=', id).execute();
    },
  };
};

export type OneTimeTokens = ReturnType<typeof createOneTimeTokens>;
