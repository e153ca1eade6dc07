import type { UsersShowOutput } from 'account-client';
import { api } from '../../api.ts';
import { date, dateTime, number } from '../../in-readers-language.ts';

/** What is typed before an act: the user's email, where the act takes something away, or a client address. */
export type Typed = 'confirmation' | 'address';

/** What an administrator does to a user. */
export interface Act {
  /** The same for an act and its opposite. */
  name: string;
  title: string;
  /** How it is now, or what the act does. */
  text: string;
  /** Undefined where there is nothing to do. */
  button?: { label: string; busy: string } | undefined;
  typed?: Typed;
  /** Resolves to what the administrator reads then. */
  call(typed: Record<Typed, string>): Promise<string>;
}

/** The answers' own sentences say what has happened. */
const messageOf = async (done: Promise<{ message: string }>) => (await done).message;

/** Every act, in the order in which they are shown. */
export const actsOn = (shown: UsersShowOutput): Act[] => [
  reset(shown),
  unlock(shown),
  endSessions(shown),
  removeSecondFactor(shown),
  role(shown),
  block(shown),
  deletion(shown),
];

const reset = ({ user: { id } }: UsersShowOutput): Act => ({
  name: 'reset',
  title: 'Password',
  text: 'A link to set a new one is mailed to the user. Nobody else sees it, or the password.',
  button: { label: 'Send reset link', busy: 'Sending …' },
  call: () => messageOf(api.users.sendReset.mutate({ id })),
});

const unlock = ({ user: { id } }: UsersShowOutput): Act => ({
  name: 'unlock',
  title: 'Failed logins',
  text: 'Wrong passwords and codes count anew, for a user who is shut out by too many.',
  button: { label: 'Unlock', busy: 'Unlocking …' },
  typed: 'address',
  call: ({ address }) => messageOf(api.users.unlock.mutate({ id, ...(address && { address: address.trim() }) })),
});

const endSessions = ({ user: { id }, sessions: { length } }: UsersShowOutput): Act => ({
  name: 'sessions',
  title: 'Sessions',
  text: length === 0 ? 'There are none.' : `The user is logged out everywhere. Sessions now: ${number(length)}.`,
  button: length === 0 ? undefined : { label: 'End all sessions', busy: 'Ending …' },
  call: () => messageOf(api.users.endSessions.mutate({ id })),
});

const removeSecondFactor = ({ user: { id }, hasSecondFactor }: UsersShowOutput): Act => ({
  name: 'second-factor',
  title: 'Second factor',
  text: hasSecondFactor
    ? 'For a user who has lost the authenticator app and the recovery codes: both are removed. Be sure whom you are talking to.'
    : 'There is none.',
  button: hasSecondFactor ? { label: 'Remove second factor', busy: 'Removing …' } : undefined,
  typed: 'confirmation',
  call: () => messageOf(api.users.removeSecondFactors.mutate({ id })),
});

const role = ({ user: { id, role: now } }: UsersShowOutput): Act =>
  now === 'admin'
    ? {
        name: 'role',
        title: 'Role',
        text: 'An administrator. As an ordinary user there is no way to this page any more.',
        button: { label: 'Make an ordinary user', busy: 'Changing …' },
        typed: 'confirmation',
        call: () => messageOf(api.users.setRole.mutate({ id, role: 'user' })),
      }
    : {
        name: 'role',
        title: 'Role',
        text: 'An ordinary user. An administrator can do everything on this page, to you too; every session ends first.',
        button: { label: 'Make an administrator', busy: 'Changing …' },
        typed: 'confirmation',
        call: () => messageOf(api.users.setRole.mutate({ id, role: 'admin' })),
      };

const block = ({ user: { id, blockedAt } }: UsersShowOutput): Act =>
  blockedAt === null
    ? {
        name: 'block',
        title: 'Block',
        text: 'Every session ends, and no login opens another until you unblock the user.',
        button: { label: 'Block', busy: 'Blocking …' },
        typed: 'confirmation',
        call: () => messageOf(api.users.block.mutate({ id })),
      }
    : {
        name: 'block',
        title: 'Block',
        text: `Blocked since ${dateTime(blockedAt)}.`,
        button: { label: 'Unblock', busy: 'Unblocking …' },
        call: () => messageOf(api.users.unblock.mutate({ id })),
      };

const deletion = ({ user: { id, deletedAt, blockedAt } }: UsersShowOutput): Act => ({
  name: 'deletion',
  title: 'Delete',
  text:
    deletedAt === null
      ? 'Nobody sees the profile any more. The user can come back for a while, unless blocked; then everything is removed for good, uploads too.'
      : `Deleted on ${dateTime(deletedAt)}.`,
  button: deletedAt === null ? { label: 'Delete account', busy: 'Deleting …' } : undefined,
  typed: 'confirmation',
  async call() {
    const { removedAfter } = await api.users.delete.mutate({ id });
    const until = blockedAt === null ? ' Until then the user can restore it, by a login.' : '';
    return `The account is deleted. Everything is removed after ${date(removedAfter)}.${until}`;
  },
});
