import type { UsersShowOutput } from 'account-client';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { date, dateTime } from '../../language/format.ts';
import { text } from '../../language/texts.ts';
import { dropDraft, noteActing } from '../../session/draft.ts';
import { settings } from '../../settings.ts';

/** The input of an action: the user's email as a confirmation, or a client address. */
export type Typed = 'confirmation' | 'address';

/** What an administrator can do to a user. */
export interface Act {
  /** The same for an action and its opposite. */
  name: string;
  title: string;
  /** The current state, or the effect of the action. */
  explanation: string;
  /** Undefined if there is nothing to do. */
  button?: { label: string; busy: string } | undefined;
  typed?: Typed;
  /** Whether it takes something from the user: shown in red. */
  takes?: boolean;
  /** Resolves to the success message. */
  call(typed: Record<Typed, string>): Promise<string>;
}

/** All actions, in display order. */
export const actsOn = (shown: UsersShowOutput): Act[] => [
  reset(shown),
  unlock(shown),
  endSessions(shown),
  ...(settings.impersonation && shown.user.role !== 'admin' ? [impersonate(shown)] : []),
  removeSecondFactor(shown),
  role(shown),
  block(shown),
  deletion(shown),
];

const reset = ({ user: { id } }: UsersShowOutput): Act => ({
  name: 'reset',
  title: text('common.password'),
  explanation: text('admin.acts.reset.hint'),
  button: { label: text('admin.acts.reset.button'), busy: text('common.sending') },
  async call() {
    await api.users.sendReset.mutate({ id });
    return text('admin.acts.reset.done');
  },
});

const unlock = ({ user: { id } }: UsersShowOutput): Act => ({
  name: 'unlock',
  title: text('admin.acts.unlock.title'),
  explanation: text('admin.acts.unlock.hint'),
  button: { label: text('admin.acts.unlock.button'), busy: text('admin.acts.unlock.busy') },
  typed: 'address',
  async call({ address }) {
    await api.users.unlock.mutate({ id, ...(address && { address: address.trim() }) });
    return text('admin.acts.unlock.done');
  },
});

const endSessions = ({ user: { id }, sessions: { length: count } }: UsersShowOutput): Act => ({
  name: 'sessions',
  takes: true,
  title: text('admin.sessions.title'),
  explanation: count === 0 ? text('admin.acts.endSessions.none') : text('admin.acts.endSessions.hint', { count }),
  button:
    count === 0
      ? undefined
      : { label: text('admin.acts.endSessions.button'), busy: text('admin.acts.endSessions.busy') },
  async call() {
    await api.users.endSessions.mutate({ id });
    return text('admin.acts.endSessions.done');
  },
});

const impersonate = ({ user: { id } }: UsersShowOutput): Act => ({
  name: 'impersonate',
  title: text('admin.acts.impersonate.title'),
  explanation: text('admin.acts.impersonate.hint'),
  button: { label: text('admin.acts.impersonate.button'), busy: text('admin.acts.impersonate.busy') },
  typed: 'confirmation',
  async call() {
    await api.users.impersonate.mutate({ id });
    dropDraft();
    noteActing(true);
    location.assign(pagePaths.dashboard);
    // Stays pending: the browser leaves this page, which the new session may not read.
    return new Promise<never>(() => undefined);
  },
});

const removeSecondFactor = ({ user: { id }, hasSecondFactor }: UsersShowOutput): Act => ({
  name: 'second-factor',
  takes: true,
  title: text('admin.logins.secondFactor'),
  explanation: text(hasSecondFactor ? 'admin.acts.removeSecondFactor.hint' : 'admin.acts.removeSecondFactor.none'),
  button: hasSecondFactor
    ? { label: text('admin.acts.removeSecondFactor.button'), busy: text('admin.acts.removeSecondFactor.busy') }
    : undefined,
  typed: 'confirmation',
  async call() {
    await api.users.removeSecondFactors.mutate({ id });
    return text('admin.acts.removeSecondFactor.done');
  },
});

const role = ({ user: { id, role: now } }: UsersShowOutput): Act => {
  const change = now === 'admin' ? 'take' : 'give';
  return {
    name: 'role',
    takes: change === 'take',
    title: text('admin.account.role'),
    explanation: text(`admin.acts.role.${change}.hint`),
    button: { label: text(`admin.acts.role.${change}.button`), busy: text('admin.acts.role.changing') },
    typed: 'confirmation',
    async call() {
      await api.users.setRole.mutate({ id, role: change === 'give' ? 'admin' : 'user' });
      return text(`admin.acts.role.${change}.done`);
    },
  };
};

const block = ({ user: { id, blockedAt } }: UsersShowOutput): Act =>
  blockedAt === null
    ? {
        name: 'block',
        takes: true,
        title: text('admin.acts.block.title'),
        explanation: text('admin.acts.block.hint'),
        button: { label: text('admin.acts.block.button'), busy: text('admin.acts.block.busy') },
        typed: 'confirmation',
        async call() {
          await api.users.block.mutate({ id });
          return text('admin.acts.block.done');
        },
      }
    : {
        name: 'block',
        title: text('admin.acts.block.title'),
        explanation: text('admin.acts.unblock.hint', { time: dateTime(blockedAt) }),
        button: { label: text('admin.acts.unblock.button'), busy: text('admin.acts.unblock.busy') },
        async call() {
          await api.users.unblock.mutate({ id });
          return text('admin.acts.unblock.done');
        },
      };

const deletion = ({ user: { id, deletedAt, blockedAt } }: UsersShowOutput): Act => ({
  name: 'deletion',
  takes: true,
  title: text('admin.acts.deletion.title'),
  explanation:
    deletedAt === null
      ? text('admin.acts.deletion.hint')
      : text('admin.acts.deletion.since', { time: dateTime(deletedAt) }),
  button:
    deletedAt === null
      ? { label: text('admin.acts.deletion.button'), busy: text('admin.acts.deletion.busy') }
      : undefined,
  typed: 'confirmation',
  async call() {
    const { removedAfter } = await api.users.delete.mutate({ id });
    const done = blockedAt === null ? 'admin.acts.deletion.done' : 'admin.acts.deletion.doneForBlocked';
    return text(done, { date: date(removedAfter) });
  },
});
