import pLimit from 'p-limit';
import type { TokenPurpose, User } from '../../entities/index.ts';
import type { Rate } from '../config/index.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import { isTokenPurpose, type OneTimeTokens } from './one-time-tokens.ts';
import type { DueMail } from './outbox-rows.ts';
import { inboxOf } from './text-rules.ts';
import { lockUser } from './users.ts';

/** The mail to be sent; or that no account waits for it, or that its address has had its share. */
export type Admit = (due: DueMail) => Promise<DueMail | 'unwanted' | 'no room'>;

interface Parts {
  database: Database;
  tokens: OneTimeTokens;
  rates: {
    /** Mails of a kind to one address. */
    mail: Rate;
    /** Mails with a token to one inbox, whatever tag its address carries. */
    inbox: Rate;
  };
}

const isFor: Record<TokenPurpose, (user: User) => boolean> = {
  'verify-email': (user) => !user.emailVerified,
  'reset-password': () => true,
};

/**
 * Turns the request for a mail with a token into that mail: finds its user and issues the token, which kills the older one.
 * An address past its share keeps the last link that it was sent. Any other mail, and one that was admitted before a crash,
 * is admitted as it is.
 */
export const createMailAdmission = ({ database, tokens, rates }: Parts): Admit => {
  const wasMailed = (since: Rate) => sql<boolean>`created_at > ${database.now} - ${since.seconds * 1000}`;

  /**
   * Per address it is exact, for the user is locked; per inbox it may be passed by one for each further process. A proven
   * address has its own share only: strangers, who can prove none, must not use up an inbox's with tags and so keep its
   * owner from a reset.
   */
  const hasRoom = async (tables: AllTables, { kind, email }: DueMail, user: User): Promise<boolean> => {
    const longest = rates.mail.seconds > rates.inbox.seconds ? rates.mail : rates.inbox;
    const mailed = await tables
      .selectFrom('outbox')
      .select([
        sql<number>`coalesce(sum(case when kind = ${kind} and email = ${email} and ${wasMailed(rates.mail)} then 1 else 0 end), 0)`.as(
          'address',
        ),
        sql<number>`coalesce(sum(case when ${wasMailed(rates.inbox)} then 1 else 0 end), 0)`.as('inbox'),
      ])
      .where('inbox', '=', inboxOf(email))
      .where('token_id', 'is not', null)
      .where(wasMailed(longest))
      .executeTakeFirstOrThrow();
    const isInboxOpen = user.emailVerified || Number(mailed.inbox) < rates.inbox.points;
    return Number(mailed.address) < rates.mail.points && isInboxOpen;
  };

  const admitRequest = (due: DueMail, purpose: TokenPurpose) =>
    database.transaction(async (em, tables) => {
      const user = await lockUser(em, { email: due.email });
      if (!user || !isFor[purpose](user)) return 'unwanted';
      // Another process may have admitted it, whose lease ran out before the mail went out: the link stays the same.
      const row = await tables.selectFrom('outbox').select('token_id').where('id', '=', due.id).executeTakeFirst();
      if (row?.token_id) return { ...due, userId: user.id, tokenId: row.token_id };
      if (!(await hasRoom(tables, due, user))) return 'no room';
      const change = { user_id: user.id, token_id: await tokens.issue(tables, user.id, purpose) };
      await tables.updateTable('outbox').set(change).where('id', '=', due.id).execute();
      return { ...due, userId: user.id, tokenId: change.token_id };
    });

  // A thousand requests for one address wait for its lock with one connection.
  const oneByOne = pLimit(1);

  return async (due) => {
    const { kind, tokenId } = due;
    return isTokenPurpose(kind) && !tokenId ? oneByOne(() => admitRequest(due, kind)) : due;
  };
};
