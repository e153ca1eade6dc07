/**
 * Limits of requested mails. The limit per address is exact, because the user is locked. The limit per inbox may be
 * exceeded by one mail for each further process, because each process serializes only its own mails to an inbox
 * (inbox-turns.ts). A mail to a proven address is checked only against the limit per address: otherwise strangers could
 * exhaust the limit per inbox with tagged addresses, and block a password reset.
 */
import pLimit from 'p-limit';
import type { User } from '../../../entities/index.ts';
import type { Rate } from '../../config/index.ts';
import { type AllTables, type Database, type EntityManager, sql } from '../../parts/database/contract.ts';
import { inboxOf, type LockedUser, lockUser, type RegistrationPolicy } from '../users/index.ts';
import type { CodeFor } from './code-detail.ts';
import type { InboxTurns } from './inbox-turns.ts';
import { mailKinds, type TokenPurpose } from './kinds.ts';
import type { LeasedMail, Mailing } from './outbox-rows.ts';
import type { EmailChangeRows } from './tokens/email-changes.ts';
import type { EmailCodes } from './tokens/email-codes.ts';
import { type InvitationRows, mayEnter } from './tokens/invitations.ts';
import type { OneTimeTokens } from './tokens/one-time.ts';

/** The mail to send; `unwanted`: no account is to be mailed; `limited`: the address or inbox has reached its limit. */
export type Admit = (row: LeasedMail) => Promise<LeasedMail | 'unwanted' | 'limited'>;

interface Parts {
  database: Database;
  tokens: OneTimeTokens;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
  emailCodes: Pick<EmailCodes, 'admit'>;
  registration: RegistrationPolicy;
  rates: {
    /** Mails of a kind to one address. */
    mail: Rate;
    /** Mails with a token to one inbox, under any tag. */
    inbox: Rate;
  };
  turns: InboxTurns;
}

/** How a mail request of one kind becomes a mail. */
interface Way {
  /** It reports an act, which has a limit of its own: a thief could suppress it by earlier ones. */
  isWarning: boolean;
  /** Locks the user who receives the link, if any. */
  find(em: EntityManager): Promise<LockedUser | null>;
  /** Whether the user has proven that the address is theirs. */
  isProven(user: User): boolean;
  /** Issues the token for a request made at this time. Resolves to its id. */
  issue(tables: AllTables, user: LockedUser, asked: { at: number; returnTo: string | null }): Promise<string>;
}

export const createMailAdmission = (parts: Parts) => {
  const { database, tokens, emailChanges, emailCodes, rates, turns } = parts;
  /** The caller holds the turn of the inbox. */
  const isWithinLimits = async (
    tables: AllTables,
    { kind, email }: Pick<Mailing, 'kind' | 'email'>,
    isProven: boolean,
  ): Promise<boolean> => {
    const admitted = ({ points, seconds }: Rate) =>
      tables
        .selectFrom('outbox')
        .select('id')
        .where('inbox', '=', inboxOf(email))
        .where('admitted_at', '>', sql<number>`${database.now} - ${seconds * 1000}`)
        .limit(points);
    const toAddress = await admitted(rates.mail).where('kind', '=', kind).where('email', '=', email).execute();
    if (toAddress.length >= rates.mail.points) return false;
    return isProven || (await admitted(rates.inbox).execute()).length < rates.inbox.points;
  };

  /** Undefined for a mail that needs no admission. */
  const wayOf = ({ kind, email, userId, detail }: LeasedMail): Way | undefined => {
    if (kind === 'confirm-email') {
      return {
        isWarning: false,
        async find(em) {
          const user = userId ? await lockUser(em, { id: userId }) : null;
          return user?.email === email || user?.isDeleted ? null : user;
        },
        // Any user can request a change to any address.
        isProven: () => false,
        issue: (tables, user) => emailChanges.ask(tables, user, { email, browser: detail ?? null }),
      };
    }
    const { link } = mailKinds[kind];
    if (link?.source !== 'one-time') return undefined;
    return {
      isWarning: link.isShared ?? false,
      async find(em) {
        // A mail about an account has a user id. A stranger's request has only an address.
        const user = await lockUser(em, userId ? { id: userId } : { email });
        // The user's address may have changed since.
        return user?.email === email && link.isFor(user) ? user : null;
      },
      isProven: (user) => user.emailVerified,
      issue: (tables, user, { at, returnTo }) => tokens.issue(tables, user, link.purpose, { coversFrom: at, returnTo }),
    };
  };

  const admitRequest = (request: LeasedMail, way: Way) =>
    database.transaction(async (em, tables) => {
      const user = await way.find(em);
      if (!user) return 'unwanted';
      // Another process may have admitted it and lost its lease before sending: the link stays the same. The row is
      // missing if the change was cancelled before the user was locked, for example by a new password.
      const row = await tables
        .selectFrom('outbox')
        .leftJoin('mail_targets', 'mail_targets.mail_id', 'outbox.id')
        .select(['token_id', 'created_at', 'return_to'])
        .where('id', '=', request.id)
        .executeTakeFirst();
      if (!row) return 'unwanted';
      if (row.token_id) return { ...request, userId: user.id, tokenId: row.token_id };
      const isAdmitted = way.isWarning || (await isWithinLimits(tables, request, way.isProven(user)));
      const asked = { at: row.created_at, returnTo: row.return_to };
      const tokenId = isAdmitted ? await way.issue(tables, user, asked) : null;
      const change = { user_id: user.id, token_id: tokenId };
      await tables.updateTable('outbox').set(change).where('id', '=', request.id).execute();
      return isAdmitted ? { ...request, userId: user.id, tokenId } : 'limited';
    });

  /** Whom the code of an address lets in. An unknown address is mailed too: with a code only if it may have an account. */
  const codeFor = async (tables: AllTables, email: string, user: User | null): Promise<CodeFor> => {
    if (user) return { epoch: user.sessionEpoch };
    return (await mayEnter(parts, tables, email)) ? { epoch: 0 } : 'nobody';
  };

  /** The mail itself is counted as a token is, by its own id. */
  const admitCode = (request: LeasedMail) =>
    database.transaction(async (em, tables) => {
      const user = await lockUser(em, { email: request.email });
      const row = await tables
        .selectFrom('outbox')
        .select(['token_id as tokenId', 'user_id as userId', 'detail'])
        .where('id', '=', request.id)
        .executeTakeFirst();
      if (!row) return 'unwanted';
      if (row.tokenId) return { ...request, ...row };
      const userId = user?.id ?? null;
      const isAdmitted = await isWithinLimits(tables, request, user?.emailVerified ?? false);
      const detail = emailCodes.admit(request.detail ?? '', await codeFor(tables, request.email, user));
      const change = { user_id: userId, ...(isAdmitted && { token_id: request.id, detail }) };
      await tables.updateTable('outbox').set(change).where('id', '=', request.id).execute();
      return isAdmitted ? { ...request, userId, tokenId: request.id, detail } : 'limited';
    });

  // A thousand requests for one address wait for its lock on one connection.
  const oneByOne = pLimit(1);

  /**
   * Admits a mail request: finds its user and issues the token. Past a limit no token is issued, so the last mailed
   * link keeps working. Other mails, and mails admitted before a crash, are returned unchanged.
   */
  const admit: Admit = async (row) => {
    const way = wayOf(row);
    const isCode = row.kind === 'email-code';
    if (!(way || isCode) || row.tokenId) return row;
    const release = await turns.hold(inboxOf(row.email));
    const admitted = (): ReturnType<Admit> => (way ? admitRequest(row, way) : admitCode(row));
    return oneByOne(admitted).finally(release);
  };

  return {
    admit,
    isWithinLimits,

    /**
     * Issues the first token of a user inserted by this transaction. Resolves to its id, or undefined past a limit. The
     * caller holds the turn of the inbox.
     */
    async issueWithinLimits(
      tables: AllTables,
      user: User,
      purpose: TokenPurpose,
      returnTo?: string,
    ): Promise<string | undefined> {
      if (!(await isWithinLimits(tables, { kind: purpose, email: user.email }, user.emailVerified))) return undefined;
      return tokens.issueFirst(tables, user.id, purpose, { returnTo: returnTo ?? null });
    },
  };
};

export type MailAdmission = ReturnType<typeof createMailAdmission>;
