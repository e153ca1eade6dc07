import { randomUUID } from 'node:crypto';
import { unavailable } from '../../../errors.ts';
import { hashOf } from '../../../lib/random-token.ts';
import { type AllTables, type Database, type ReadTables, sql } from '../../../parts/database/contract.ts';
import type { Secrets } from '../../../secrets.ts';
import { deleteInBatches } from '../../../workers/sweep.ts';
import type { LockedId } from '../../users/index.ts';
import { mailKinds, type TokenPurpose } from '../kinds.ts';
import { createMailedTokens, isCodeOf } from './derivation.ts';
import { createTokenReservations } from './reservations.ts';

const KEPT_MS = 7 * 24 * 60 * 60_000;

export interface FoundToken {
  id: string;
  userId: string;
  email: string;
  purpose: TokenPurpose;
  used: boolean;
  expired: boolean;
  /**
   * When the first act that its mails report happened, but at most one mail lifetime before the last one. Milliseconds
   * since 1970, as `disownedAt`.
   */
  coversFrom: number;
  /** When the token was used to disown the account. */
  disownedAt: number | null;
  /** Where the page of the link leads. Check it again with `returnAddress`: the configuration may have changed. */
  returnTo: string | null;
}

/** A token that stands for six digits in one browser. */
interface TokenOfBrowser {
  id: string;
  userId: string;
  limitEpoch: number | null;
  hash: string;
}

interface Issue {
  /** The time of the reported act (database clock). */
  coversFrom?: number | null;
  returnTo?: string | null;
}

/** Mailed single-use tokens. A token is used and replaced under the lock on its user: it works once, also under a race. */
export const createOneTimeTokens = ({ database, secrets }: { database: Database; secrets: Secrets }) => {
  const mailed = createMailedTokens(secrets);
  const derive = (purpose: TokenPurpose, id: string) => mailed.derive(purpose, id);

  const expiryOf = (purpose: TokenPurpose) => sql<number>`${database.now} + ${mailKinds[purpose].lifeMs}`;

  /**
   * Extends the unexpired, unused token of this purpose, if any, to cover an earlier act too. Resolves to its id. If the
   * secret of its former mails was removed, it follows from the current one, or no further mail could be sent.
   */
  const renew = async (
    tables: AllTables,
    { id: userId }: LockedId,
    purpose: TokenPurpose,
    coversFrom: number | null,
  ): Promise<string | undefined> => {
    const found = await tables
      .selectFrom('one_time_tokens')
      .select(['id', 'token_hash as hash'])
      .where('user_id', '=', userId)
      .where('purpose', '=', purpose)
      .where('used', '=', 0)
      .where('expires_at', '>', database.now)
      .executeTakeFirst();
    if (!found) return undefined;
    const covers_from = sql<number>`case when covers_from > ${coversFrom} then ${coversFrom} else covers_from end`;
    const isLost = mailed.deriveStored(purpose, found) === 'otherKey';
    const renewal = {
      expires_at: expiryOf(purpose),
      covers_from,
      ...(isLost && { token_hash: hashOf(derive(purpose, found.id)) }),
    };
    await tables.updateTable('one_time_tokens').set(renewal).where('id', '=', found.id).execute();
    return found.id;
  };

  /** The token of a user inserted by this transaction, or of one who has none. */
  const issueFirst = async (
    tables: AllTables,
    userId: string,
    purpose: TokenPurpose,
    { coversFrom = null, returnTo = null }: Issue = {},
  ): Promise<string> => {
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
        covers_from: coversFrom,
        return_to: returnTo,
      })
      .execute();
    return id;
  };

  const revoke = async (tables: AllTables, { id }: LockedId, purpose: TokenPurpose): Promise<void> => {
    await tables.deleteFrom('one_time_tokens').where('user_id', '=', id).where('purpose', '=', purpose).execute();
  };

  return {
    ...createTokenReservations(database),
    /** The token of an id issued by this process. */
    derive,

    /**
     * Issues a token, which replaces the older one of this purpose; a shared, unused token is renewed instead.
     * Resolves to an id for `derive`.
     */
    async issue(tables: AllTables, user: LockedId, purpose: TokenPurpose, given: Issue = {}): Promise<string> {
      const { link } = mailKinds[purpose];
      const isShared = link?.source === 'one-time' && link.isShared;
      const renewed = isShared && (await renew(tables, user, purpose, given.coversFrom ?? null));
      if (renewed) return renewed;
      await revoke(tables, user, purpose);
      return issueFirst(tables, user.id, purpose, given);
    },

    issueFirst,
    revoke,

    /** Revokes the user's tokens of every purpose. */
    async revokeAll(tables: AllTables, { id }: LockedId): Promise<void> {
      await tables.deleteFrom('one_time_tokens').where('user_id', '=', id).execute();
    },

    /** Finds a token, including used and expired ones. */
    async find(tables: ReadTables, purposes: readonly TokenPurpose[], token: string): Promise<FoundToken | undefined> {
      const row = await tables
        .selectFrom('one_time_tokens as token')
        .innerJoin('users as user', 'user.id', 'token.user_id')
        .select(['token.id', 'token.user_id as userId', 'user.email', 'token.purpose', 'token.used'])
        .select(['token.covers_from', 'token.expires_at', 'token.disowned_at as disownedAt'])
        .select('token.return_to as returnTo')
        .select(sql<number>`${sql.ref('token.expires_at')} <= ${database.now}`.as('expired'))
        .where('token.token_hash', '=', hashOf(token))
        .where('token.purpose', 'in', purposes)
        .executeTakeFirst();
      if (!row) return undefined;
      const { covers_from, expires_at, ...found } = row;
      const purpose = row.purpose as TokenPurpose;
      // The previous release did not store what the mails of its tokens report.
      const coversFrom = Math.max(Number(covers_from ?? 0), Number(expires_at) - 2 * mailKinds[purpose].lifeMs);
      return { ...found, purpose, coversFrom, used: row.used === 1, expired: row.expired === 1 };
    },

    /** The unexpired verification token of the latest account for which this browser registered. `browser` is its hash. */
    async findInBrowser(tables: ReadTables, browser: string): Promise<TokenOfBrowser | undefined> {
      const current = tables
        .selectFrom('one_time_tokens as token')
        .innerJoin('users as user', 'user.id', 'token.user_id')
        .select(['token.id', 'token.user_id as userId', 'user.limit_epoch as limitEpoch', 'token.token_hash as hash'])
        .where('token.purpose', '=', 'verify-email' satisfies TokenPurpose)
        .where('token.expires_at', '>', database.now)
        .orderBy('token.user_id', 'desc')
        .limit(1);
      const byPassword = await current.where('user.password_browser', '=', browser).executeTakeFirst();
      const byProvider = await current
        .innerJoin('identities as identity', 'identity.user_id', 'user.id')
        .where('identity.browser', '=', browser)
        .executeTakeFirst();
      return byPassword && byProvider && byProvider.userId > byPassword.userId
        ? byProvider
        : (byPassword ?? byProvider);
    },

    /** The token for which a code stands. Undefined for a wrong code. SERVICE_UNAVAILABLE without the secret of the token. */
    tokenByCode({ id, hash }: TokenOfBrowser, code: string): string | undefined {
      const found = mailed.deriveStored('verify-email', { id, hash });
      if (found === 'otherKey') throw unavailable(new Error('the mail of the code was made with another APP_SECRET'));
      return isCodeOf(found.token, code) ? found.token : undefined;
    },

    /**
     * The token of an id, by the secret that issued it. Undefined if it was used or replaced; `otherKey` if this
     * process does not have that secret.
     */
    async deriveAgain(
      tables: ReadTables,
      purpose: TokenPurpose,
      id: string,
    ): Promise<{ token: string } | 'otherKey' | undefined> {
      const row = await tables
        .selectFrom('one_time_tokens')
        .select(['id', 'used', 'token_hash as hash'])
        .where('id', '=', id)
        .executeTakeFirst();
      if (row?.used !== 0) return undefined;
      return mailed.deriveStored(purpose, row);
    },

    /** Deletes tokens a week after expiry. Until then a second use differs from a wrong token. */
    sweep: (): Promise<void> =>
      deleteInBatches(database, 'one_time_tokens', sql`expires_at < ${database.now} - ${KEPT_MS}`),

    async markUsed(tables: AllTables, id: string): Promise<void> {
      await tables.updateTable('one_time_tokens').set({ used: 1 }).where('id', '=', id).execute();
    },

    /** Marks that the account was disowned with the token, which is possible once. */
    async markDisowned(tables: AllTables, id: string): Promise<void> {
      await tables.updateTable('one_time_tokens').set({ disowned_at: database.now }).where('id', '=', id).execute();
    },
  };
};

export type OneTimeTokens = ReturnType<typeof createOneTimeTokens>;
