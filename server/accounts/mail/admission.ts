import pLimit from 'p-limit';
import type { User } from '../../entities/index.ts';
import type { Rate } from '../config/index.ts';
import { type AllTables, type Database, type EntityManager, sql } from '../parts/database/contract.ts';
import type { EmailChangeRows } from './email-change-rows.ts';
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
  emailChanges: EmailChangeRows;
  rates: {
    /** Mails of a kind to one address. */
    mail: Rate;
    /** Mails with a token to one inbox, under any tag. */
    inbox: Rate;
  };
  turns: InboxTurns;
}

/** How the request for a mail of one kind becomes that mail. */
interface Way {
  /** Locks the user who is mailed a link, if there is one. */
  find(em: EntityManager): Promise<User | null>;
  /** Whether the address is known to be the user's. */
  isProven(user: User): boolean;
  /** Issues the token, which replaces the older one. Answers its id. */
  issue(tables: AllTables, user: User): Promise<string>;
}

export const createMailAdmission = ({ database, tokens, emailChanges, rates, turns }: Parts) => {
  const wasMailed = (since: Rate) => sql<boolean>`created_at > ${database.now} - ${since.seconds * 1000}`;

  /**
   * The limit per address is exact, because the user is locked; that per inbox, of which the caller has the turn, may be
   * exceeded by one mail for each further process. A proven address counts towards its own limit only: strangers, who
   * can prove none, must not use up the limit of an inbox with tags and so keep its owner from a reset.
   */
  const isWithinLimits = async (
    tables: AllTables,
    { kind, email }: Pick<Mailing, 'kind' | 'email'>,
    isProven: boolean,
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
    const isInboxOpen = isProven || Number(mailed.inbox) < rates.inbox.points;
    return Number(mailed.address) < rates.mail.points && isInboxOpen;
  };

  /** Undefined for a mail that is no request. */
  const wayOf = ({ kind, email, userId }: LeasedMail): Way | undefined => {
    if (kind === 'confirm-email') {
      return {
        async find(em) {
          const user = userId ? await lockUser(em, { id: userId }) : null;
          return user?.email === email || user?.isDeleted ? null : user;
        },
        // Anybody can ask for a change to any address.
        isProven: () => false,
        issue: (tables, user) => emailChanges.ask(tables, user.id, email),
      };
    }
    if (!isTokenPurpose(kind)) return undefined;
    return {
      async find(em) {
        // A mail about an account names it; the request of a stranger names an address.
        const user = await lockUser(em, userId ? { id: userId } : { email });
        // Its address may have become another since.
        return user?.email === email && mailKinds[kind].token?.isFor(user) ? user : null;
      },
      isProven: (user) => user.emailVerified,
      issue: (tables, user) => tokens.issue(tables, user.id, kind),
    };
  };

  const admitRequest = (request: LeasedMail, way: Way) =>
    database.transaction(async (em, tables) => {
      const user = await way.find(em);
      if (!user) return 'unwanted';
      // Another process may have admitted it, and lost its lease before the mail was sent: the link stays the same. It is gone
      // where it was given up before the user was locked, as the change of an address by a new password.
      const row = await tables.selectFrom('outbox').select('token_id').where('id', '=', request.id).executeTakeFirst();
      if (!row) return 'unwanted';
      if (row.token_id) return { ...request, userId: user.id, tokenId: row.token_id };
      if (!(await isWithinLimits(tables, request, way.isProven(user)))) return 'limited';
      const change = { user_id: user.id, token_id: await way.issue(tables, user) };
      await tables.updateTable('outbox').set(change).where('id', '=', request.id).execute();
      return { ...request, userId: user.id, tokenId: change.token_id };
    });

  // A thousand requests for one address wait for its lock with one connection.
  const oneByOne = pLimit(1);

  /**
   * Turns the request for a mail with a token into that mail: finds its user and issues the token. Past a limit no token
   * is issued, so the last mailed link keeps working. Any other mail, and one that was admitted before a crash, is
   * admitted as it is.
   */
  const admit: Admit = async (row) => {
    const way = wayOf(row);
    if (!way || row.tokenId) return row;
    const release = await turns.hold(inboxOf(row.email));
    return oneByOne(() => admitRequest(row, way)).finally(release);
  };

  return {
    admit,
    isWithinLimits,

    /**
     * Admits the mail to a user that this transaction has inserted: issues the first token and answers its id, or
     * undefined past a limit. The caller has the turn of the inbox.
     */
    async issueWithinLimits(tables: AllTables, user: User, purpose: TokenPurpose): Promise<string | undefined> {
      if (!(await isWithinLimits(tables, { kind: purpose, email: user.email }, user.emailVerified))) return undefined;
      return tokens.issueFirst(tables, user.id, purpose);
    },
  };
};

export type MailAdmission = ReturnType<typeof createMailAdmission>;
