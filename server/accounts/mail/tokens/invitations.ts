import { v7 as uuidv7 } from 'uuid';
import type { Invitation, User } from '../../../../entities/index.ts';
import { hashOf } from '../../../lib/random-token.ts';
import { type AllTables, columnsOf, type Database, type ReadTables, sql } from '../../../parts/database/contract.ts';
import type { Secrets } from '../../../secrets.ts';
import { deleteInBatches } from '../../../workers/sweep.ts';
import { inboxOf, type RegistrationPolicy } from '../../users/index.ts';
import { mailKinds } from '../kinds.ts';
import { createMailedTokens } from './derivation.ts';

const INVITATION = 'invitation';

const listedFields = ['id', 'email', 'invitedBy', 'createdAt', 'expiresAt', 'returnTo'] as const;
const listedColumns = columnsOf(listedFields);

/** Times in milliseconds since 1970. */
export type ListedInvitation = Pick<Invitation, (typeof listedFields)[number]>;

/** The inviter, as recorded in the event of the new account. */
export type InvitedBy = 'administrator' | 'operator';

/**
 * Invitations, by the database clock. The transaction that creates the account deletes the row: of two requests with
 * one invitation, the one that deletes it wins.
 */
export const createInvitationRows = ({ database, secrets }: { database: Database; secrets: Secrets }) => {
  const mailed = createMailedTokens(secrets);
  const isCurrent = sql<boolean>`invitations.expires_at > ${database.now}`;

  const current = (tables: ReadTables) => tables.selectFrom('invitations').select(listedColumns).where(isCurrent);

  /** Resolves to false if it was used, revoked or replaced, or has expired. */
  const remove = async (tables: AllTables, { id }: ListedInvitation): Promise<boolean> => {
    const { numDeletedRows } = await tables
      .deleteFrom('invitations')
      .where('id', '=', id)
      .where(isCurrent)
      .executeTakeFirst();
    return numDeletedRows === 1n;
  };

  return {
    /**
     * Invites an address and replaces its older invitation. Rejects with a duplicate key error after a concurrent
     * invitation.
     */
    async issue(
      tables: AllTables,
      { email, invitedBy, returnTo }: Pick<Invitation, 'email' | 'invitedBy' | 'returnTo'>,
    ): Promise<ListedInvitation> {
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
          return_to: returnTo,
        })
        .execute();
      return current(tables).where('id', '=', id).executeTakeFirstOrThrow();
    },

    /** The unexpired invitation of a token. */
    find: (tables: ReadTables, token: string): Promise<ListedInvitation | undefined> =>
      current(tables).where('token_hash', '=', hashOf(token)).executeTakeFirst(),

    /** The unexpired invitation of an address. */
    findFor: (tables: ReadTables, email: string): Promise<ListedInvitation | undefined> =>
      current(tables).where('email', '=', email).executeTakeFirst(),

    /** Consumes an invitation for a new user, who gets its mail. Undefined if it cannot be used. */
    async use(tables: AllTables, invitation: ListedInvitation, userId: string): Promise<InvitedBy | undefined> {
      if (!(await remove(tables, invitation))) return undefined;
      const { id, email, invitedBy } = invitation;
      await tables
        .updateTable('outbox')
        .set({ user_id: userId })
        .where('inbox', '=', inboxOf(email))
        .where('token_id', '=', id)
        .execute();
      return invitedBy === null ? 'operator' : 'administrator';
    },

    /** Usable invitations, newest first. Excludes addresses that already have an account. */
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

    /** Resolves to the invited address, or undefined for an unknown invitation. */
    async revoke(tables: AllTables, id: string): Promise<string | undefined> {
      const found = await current(tables).where('id', '=', id).executeTakeFirst();
      return found && (await remove(tables, found)) ? found.email : undefined;
    },

    /**
     * The token of the mail, by the secret that issued it. Undefined if void; `otherKey` if this process does
     * not have that secret.
     */
    async deriveAgain(tables: ReadTables, id: string): Promise<{ token: string } | 'otherKey' | undefined> {
      const row = await tables
        .selectFrom('invitations')
        .select(['id', 'token_hash as hash'])
        .where('id', '=', id)
        .executeTakeFirst();
      return row && mailed.deriveStored(INVITATION, row);
    },

    /** Deletes expired invitations. */
    sweep: (): Promise<void> => deleteInBatches(database, 'invitations', sql`expires_at < ${database.now}`),
  };
};

export type InvitationRows = ReturnType<typeof createInvitationRows>;

/** Whether a proven address may have a new account: freely, or by an open invitation. */
export const mayEnter = async (
  { invitations, registration }: { invitations: Pick<InvitationRows, 'findFor'>; registration: RegistrationPolicy },
  tables: ReadTables,
  email: string,
): Promise<boolean> =>
  registration.admits(email) ||
  (registration.takesInvitations && (await invitations.findFor(tables, email)) !== undefined);

/** How a new user is admitted. `returnTo`: the target of the invitation; check it again with `returnAddress`. */
interface Admittance {
  invitedBy?: InvitedBy;
  returnTo?: Invitation['returnTo'];
}

/**
 * Admits a new user: by an invitation, which is consumed if the address is proven, or freely. Undefined if refused.
 */
export async function entryFor(
  { invitations, registration }: { invitations: InvitationRows; registration: RegistrationPolicy },
  tables: AllTables,
  { id, email, emailVerified }: Pick<User, 'id' | 'email' | 'emailVerified'>,
): Promise<Admittance | undefined> {
  const invitation =
    emailVerified && registration.takesInvitations ? await invitations.findFor(tables, email) : undefined;
  const invitedBy = invitation && (await invitations.use(tables, invitation, id));
  if (invitedBy) return { invitedBy, returnTo: invitation.returnTo };
  return registration.admits(email) ? {} : undefined;
}
