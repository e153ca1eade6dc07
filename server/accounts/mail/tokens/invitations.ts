import { v7 as uuidv7 } from 'uuid';
import type { Invitation } from '../../entities/index.ts';
import { type AllTables, columnsOf, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import type { Secrets } from '../secrets.ts';
import { deleteInBatches } from '../workers/sweep.ts';
import { mailKinds } from './mail-kinds.ts';
import { createMailedTokens, hashOf } from './mailed-tokens.ts';

const INVITATION = 'invitation';

const listedFields = ['id', 'email', 'invitedBy', 'createdAt', 'expiresAt'] as const;
const listedColumns = columnsOf(listedFields);

/** Times in milliseconds since 1970. */
export type ListedInvitation = Pick<Invitation, (typeof listedFields)[number]>;

/** Who invited the user, as the event of the new account tells it. */
export type InvitedBy = 'administrator' | 'operator';

/**
 * Invitations, by the database's clock. A row is deleted in the transaction that makes the account: of two
 * requests with one invitation, the one that deletes the row wins.
 */
export const createInvitationRows = ({ database, secrets }: { database: Database; secrets: Secrets }) => {
  const mailed = createMailedTokens(secrets);
  const isCurrent = sql<boolean>`invitations.expires_at > ${database.now}`;

  const current = (tables: ReadTables) => tables.selectFrom('invitations').select(listedColumns).where(isCurrent);

  /** Uses an invitation up. Undefined where it has been used, revoked or replaced, or has expired. */
  const use = async (tables: AllTables, { id, invitedBy }: ListedInvitation): Promise<InvitedBy | undefined> => {
    const { numDeletedRows } = await tables
      .deleteFrom('invitations')
      .where('id', '=', id)
      .where(isCurrent)
      .executeTakeFirst();
    if (numDeletedRows !== 1n) return undefined;
    return invitedBy === null ? 'operator' : 'administrator';
  };

  return {
    /** Invites an address, in place of its older invitation. Fails as a duplicate where another has just invited it. */
    async issue(tables: AllTables, email: string, invitedBy: string | null): Promise<ListedInvitation> {
      const id = uuidv7();
      await tables.deleteFrom('invitations').where('email', '=', email).execute();
      await tables
        .insertInto('invitations')
        .values({
          id,
          email,
          token_hash: hashOf(mailed.derive(INVITATION, id)),
          invited_by: invitedBy,
          created_at: database.now,
          expires_at: sql`${database.now} + ${mailKinds[INVITATION].lifeMs}`,
        })
        .execute();
      return current(tables).where('id', '=', id).executeTakeFirstOrThrow();
    },

    /** The invitation of a token, until it expires. */
    find: (tables: ReadTables, token: string): Promise<ListedInvitation | undefined> =>
      current(tables).where('token_hash', '=', hashOf(token)).executeTakeFirst(),

    /** The invitation of an address, until it expires. */
    findFor: (tables: ReadTables, email: string): Promise<ListedInvitation | undefined> =>
      current(tables).where('email', '=', email).executeTakeFirst(),

    use,

    /** Those that can be used, newest first: not those of addresses that have become a user's otherwise. */
    list: (
      tables: ReadTables,
      { limit, cursor }: { limit: number; cursor: string | undefined },
    ): Promise<ListedInvitation[]> =>
      current(tables)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('users')
                .select('users.id')
                .whereRef('users.email', '=', 'invitations.email')
                .where('users.email_verified', '=', 1),
            ),
          ),
        )
        .$if(cursor !== undefined, (invitations) => invitations.where('id', '<', cursor as string))
        .orderBy('id', 'desc')
        .limit(limit)
        .execute(),

    /** Answers the address that was invited; undefined where there is no such invitation. */
    async revoke(tables: AllTables, id: string): Promise<string | undefined> {
      const found = await current(tables).where('id', '=', id).executeTakeFirst();
      return found && (await use(tables, found)) && found.email;
    },

    /**
     * The token for the mail, under the secret that it was issued with. Undefined once it is of no use; `foreign` if this
     * process does not have that secret.
     */
    async deriveAgain(tables: ReadTables, id: string): Promise<{ token: string } | 'foreign' | undefined> {
      const row = await tables
        .selectFrom('invitations')
        .select(['id', 'token_hash as hash'])
        .where('id', '=', id)
        .executeTakeFirst();
      return row && mailed.deriveStored(INVITATION, row);
    },

    /** Deletes expired ones. */
    sweep: (): Promise<void> => deleteInBatches(database, 'invitations', sql`expires_at < ${database.now}`),
  };
};

export type InvitationRows = ReturnType<typeof createInvitationRows>;
