import type { Accounts } from '../../accounts/index.ts';
import { type Account, isMailAddress, isSearchable, normalizeEmail } from '../../accounts/users/index.ts';
import { operator } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { pagePaths } from '../../shared/page-paths.ts';
import { UsageError } from '../failure.ts';
import { day, describe, iso, listOf, summaryOf } from './output.ts';

/** The maximum number of users in the result of `find`. */
const MAX_FOUND = 100;

/** The result of a command: text for people, and the same as data for `--json`. */
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
  if (!isMailAddress(email)) throw new UsageError(`${argument} is not an email address`);
  return email;
}

async function userOf({ users }: Accounts, argument: string): Promise<Account> {
  const email = addressIn(argument);
  const found = await users.findCredential(email);
  if (!found) throw new ServiceError('NOT_FOUND', { message: `No account has the email ${email}` });
  return found.user;
}

/** The result of an action on an account; `data` is for programs, in addition to the account's `id` and `email`. */
interface Done {
  text: string;
  data?: Record<string, unknown>;
}

/** A command that acts on the account of an address. */
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
    does: `lists accounts with a word of the name, or an email, that starts with a text (at most ${MAX_FOUND}), or the newest`,
    async run({ administration }, q) {
      if (q !== '' && !isSearchable(q)) throw new UsageError(`${q} has no searchable character`);
      const { users, nextCursor } = await administration.users.find({ q, limit: MAX_FOUND });
      const more = nextCursor === undefined ? '' : '… and more: use a longer prefix\n';
      return { text: listOf(users) + more, data: users.map(summaryOf) };
    },
  },
  show: {
    takes: 'EMAIL',
    does: 'shows an account: state, login methods, sessions',
    async run(accounts, argument) {
      const { id } = await userOf(accounts, argument);
      const shown = await accounts.administration.users.show(id);
      if (!shown) throw new ServiceError('NOT_FOUND');
      return describe(shown);
    },
  },
  unlock: {
    ...act('resets the limits on wrong passwords and codes', async (accounts, { id, email }, options) => {
      await accounts.administration.acts.unlockUser(id, options, operator);
      const there = options.address === undefined ? '' : `, and of ${options.address},`;
      return { text: `The login limits of ${email}${there} were reset.\n` };
    }),
    takes: 'EMAIL [--address IP]',
  },
  block: act('ends every session and refuses every login', async (accounts, { id, email }) => {
    await accounts.administration.acts.blockUser(id, operator);
    return { text: `${email} is blocked, and all sessions were ended.\n` };
  }),
  unblock: act('lets the user log in again', async (accounts, { id, email }) => {
    await accounts.administration.acts.unblockUser(id, operator);
    return { text: `${email} can log in again.\n` };
  }),
  'make-admin': act('makes the user an administrator', async (accounts, { id, email }) => {
    await accounts.administration.acts.setRole(id, 'admin', operator);
    return { text: `${email} is an administrator. Next: log in again, and open ${pagePaths.admin}.\n` };
  }),
  invite: {
    takes: 'EMAIL',
    does: 'mails a link to create an account, which works once and for 7 days',
    async run(accounts, argument) {
      const {
        id: invitation,
        email,
        expiresAt,
      } = await accounts.lifecycle.invitations.inviteAsOperator(addressIn(argument));
      return {
        text: `${email} is invited until ${day(expiresAt)}.\n`,
        data: { invitation, email, expiresAt: iso(expiresAt) },
      };
    },
  },
  'drop-field': {
    takes: 'FIELD',
    does: 'removes the values of a field that is no longer in PROFILE_FIELDS, of all users',
    async run({ users }, field) {
      if (users.customFields.fields.some(({ name }) => name === field)) {
        throw new UsageError(`${field} is in PROFILE_FIELDS: remove it there first, on every instance`);
      }
      const values = await users.dropField(field);
      return { text: `${values} values of ${field} were removed.\n`, data: { field, values } };
    },
  },
  delete: act('deletes the account; the user can restore it for some days', async (accounts, { id, email }) => {
    const { removedAfter } = await accounts.administration.acts.deleteAccountOf(id, operator);
    return {
      text: `${email} is deleted. A login can restore the account until ${day(removedAfter)}.\n`,
      data: { removedAfter: iso(removedAfter) },
    };
  }),
};
