import type { Accounts } from '../../accounts/index.ts';
import { isMailAddress, normalizeEmail } from '../../accounts/text-rules.ts';
import { isSearchable } from '../../accounts/user-search.ts';
import type { Account } from '../../accounts/users.ts';
import { operator } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { UsageError } from '../failure.ts';
import { day, describe, iso, listOf, summaryOf } from './output.ts';

/** The most users that one `find` lists. */
const MOST_FOUND = 100;

/** What a command answers: sentences or a list for people, and the same as data for `--json`. */
export interface Answer {
  text: string;
  data: unknown;
}

interface Options {
  /** A client address, for `unlock`. */
  address: string | undefined;
}

interface Command {
  /** For the usage text. */
  takes: string;
  does: string;
  run(accounts: Accounts, argument: string, options: Options): Promise<Answer>;
}

function addressIn(argument: string): string {
  const email = normalizeEmail(argument);
  if (!isMailAddress(email)) throw new UsageError(`${argument} is no email address`);
  return email;
}

async function userOf({ users }: Accounts, argument: string): Promise<Account> {
  const email = addressIn(argument);
  const found = await users.findCredential(email);
  if (!found) throw new ServiceError('NOT_FOUND', { message: `There is no account of ${email}` });
  return found.user;
}

/** What an act on an account has done: `data` is for programs, beside the account's `id` and `email`. */
interface Done {
  text: string;
  data?: Record<string, unknown>;
}

/** A command that does something to the account of an address. */
const act = (does: string, act: (accounts: Accounts, user: Account, options: Options) => Promise<Done>): Command => ({
  takes: 'EMAIL',
  does,
  async run(accounts, argument, options) {
    const user = await userOf(accounts, argument);
    const { id, email } = user;
    const { text, data } = await act(accounts, user, options);
    return { text, data: { id, email, ...data } };
  },
});

/** Every command: a new one is an entry here. */
export const commands: Record<string, Command> = {
  find: {
    takes: '[PREFIX]',
    does: `lists accounts whose name or email starts so (at most ${MOST_FOUND}), or the newest`,
    async run({ managedUsers }, q) {
      if (q !== '' && !isSearchable(q)) throw new UsageError(`There is nothing to search for in ${q}`);
      const { users, nextCursor } = await managedUsers.find({ q, limit: MOST_FOUND });
      const more = nextCursor === undefined ? '' : '… and more: a longer prefix finds fewer\n';
      return { text: listOf(users) + more, data: users.map(summaryOf) };
    },
  },
  show: {
    takes: 'EMAIL',
    does: 'shows an account: state, ways to log in, sessions',
    async run(accounts, argument) {
      const { id } = await userOf(accounts, argument);
      const shown = await accounts.managedUsers.show(id);
      if (!shown) throw new ServiceError('NOT_FOUND');
      return describe(shown);
    },
  },
  unlock: {
    ...act('lifts the limits on wrong passwords and codes', async (accounts, { id, email }, options) => {
      await accounts.unlockUser(id, options, operator);
      const there = options.address === undefined ? '' : `, and those from ${options.address}`;
      return { text: `Failed logins of ${email}${there} count anew.\n` };
    }),
    takes: 'EMAIL [--address IP]',
  },
  block: act('ends every session, and refuses every login', async (accounts, { id, email }) => {
    await accounts.blockUser(id, operator);
    return { text: `${email} is blocked, and every session has ended.\n` };
  }),
  unblock: act('lets the user log in again', async (accounts, { id, email }) => {
    await accounts.unblockUser(id, operator);
    return { text: `${email} can log in again.\n` };
  }),
  'make-admin': act('makes the user an administrator', async (accounts, { id, email }) => {
    await accounts.setRole(id, 'admin', operator);
    return { text: `${email} is an administrator.\n` };
  }),
  invite: {
    takes: 'EMAIL',
    does: 'mails a link to create an account, which works once and for 7 days',
    async run(accounts, argument) {
      const { id: invitation, email, expiresAt } = await accounts.inviteAsOperator(addressIn(argument));
      return {
        text: `${email} is invited until ${day(expiresAt)}.\n`,
        data: { invitation, email, expiresAt: iso(expiresAt) },
      };
    },
  },
  delete: act('deletes the account; for a while its user can restore it', async (accounts, { id, email }) => {
    const { removedAfter } = await accounts.deleteAccountOf(id, operator);
    return {
      text: `${email} is deleted. A login can restore the account until ${day(removedAfter)}.\n`,
      data: { removedAfter: iso(removedAfter) },
    };
  }),
};
