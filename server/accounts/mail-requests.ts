import pLimit from 'p-limit';
import type { User } from '../../entities/index.ts';
import type { Rate } from '../config/index.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { InboxTurns } from './inbox-turns.ts';
import { isTokenPurpose, mailKinds, type TokenPurpose } from './mail-kinds.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';
import type { LeasedMail, Mailing } from './outbox-rows.ts';
import { inboxOf } from './text-rules.ts';
import { lockUser } from './users.ts';

/**
 * The mail to send; or `unwanted`: no account is to be mailed; or `limited`: its address or inbox has reached a limit.
 */
export type Admit = (row: LeasedMail) => Promise<LeasedMail | 'unwanted' | 'limited'>;

interface Parts {
  database: Database;
  tokens: OneTimeTokens;
  rates: {
    /** Mails of a kind to one address. */
    mail: Rate;
    /** Mails with a token to one inbox, under any tag. */
    inbox: Rate;
  };
  turns: InboxTurns;
}

export const createMailAdmission = ({ database, tokens, rates, turns }: Parts) => {
  const wasMailed = (since: Rate) => sql<boolean>`created_at > ${database.now} - ${since.seconds * 1000}`;

  /**
   * The limit per address is exact, because the user is locked; that per inbox, of which the caller has the turn, may be
   * exceeded by one mail for each further process. A proven address counts towards its own limit only: strangers, who
   * can prove none, must not use up the limit of an inbox with tags and so keep its owner from a reset.
   */
  const isWithinLimits = async (
    tables: AllTables,
    { kind, email }: Pick<Mailing, 'kind' | 'email'>,
    user: Pick<User, 'emailVerified'>,
  ): Promise<boolean> => {
    const longest = rates.mail.seconds > rates.inbox.seconds ? rates.mail : rates.inbox;
    const toAddress = sql`kind = ${kind} and email = ${email} and ${wasMailed(rates.mail)}`;
    const mailed = await tables
      .selectFrom('outbox')
      .select([
        sql<number>`coalesce(sum(case when ${toAddress} then 1 else 0 end), 0)`.as('address'),
        sql<number>`coalesce(sum(case when ${wasMailed(rates.inbox)} then 1 else 0 end), 0)`.as('inbox'),
      ])
      .where('inbox', '=', inboxOf(email))
      .where('token_id', 'is not', null)
      .where(wasMailed(longest))
      .executeTakeFirstOrThrow();
    const isInboxOpen = user.emailVerified || Number(mailed.inbox) < rates.inbox.points;
    return Number(mailed.address) < rates.mail.points && isInboxOpen;
  };

  const admitRequest = (request: LeasedMail, purpose: TokenPurpose) =>
    database.transaction(async (em, tables) => {
      const user = await lockUser(em, { email: request.email });
      if (!user || !mailKinds[purpose].token?.isFor(user)) return 'unwanted';
      // Another process may have admitted it, and lost its lease before the mail was sent: the link stays the same.
      const row = await tables.selectFrom('outbox').select('token_id').where('id', '=', request.id).executeTakeFirst();
      if (row?.token_id) return { ...request, userId: user.id, tokenId: row.token_id };
      if (!(await isWithinLimits(tables, request, user))) return 'limited';
      const change = { user_id: user.id, token_id: await tokens.issue(tables, user.id, purpose) };
      await tables.updateTable('outbox').set(change).where('id', '=', request.id).execute();
      return { ...request, userId: user.id, tokenId: change.token_id };
    });

  // A thousand requests for one address wait for its lock with one connection.
  const oneByOne = pLimit(1);

  /**
   * Turns the request for a mail with a token into that mail: finds its user and issues the token, which replaces the
   * older one. Past a limit no token is issued, so the last mailed link keeps working. Any other mail, and one that was
   * admitted before a crash, is admitted as it is.
   */
  const admit: Admit = async (row) => {
    const { kind, email, tokenId } = row;
    if (!isTokenPurpose(kind) || tokenId) return row;
    const release = await turns.hold(inboxOf(email));
    return oneByOne(() => admitRequest(row, kind)).finally(release);
  };

  return {
    admit,

    /**
     * Admits the mail to a user that this transaction has inserted: issues the first token and answers its id, or
     * undefined past a limit. The caller has the turn of the inbox.
     */
    async issueWithinLimits(tables: AllTables, user: User, purpose: TokenPurpose): Promise<string | undefined> {
      if (!(await isWithinLimits(tables, { kind: purpose, email: user.email }, user))) return undefined;
      return tokens.issueFirst(tables, user.id, purpose);
    },
  };
};

export type MailAdmission = ReturnType<typeof createMailAdmission>;
