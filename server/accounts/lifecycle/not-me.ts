import type { Caller } from '../../activity/caller.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import {
  CLOCKS_DIFFER_MS,
  hasProvenMethod,
  isAddedSince,
  type ListedMethod,
  methodList,
  removeConsentsSince,
  removeMethods,
  removeUnprovenMethods,
} from '../credentials/index.ts';
import {
  AFTER_NOT_ME,
  type EmailChangeRows,
  type OneTimeTokens,
  type Outbox,
  type RecordEvent,
  type TokenScope,
  withToken,
} from '../mail/index.ts';
import { endSessionsOf, type KnownDevices } from '../sessions/index.ts';
import type { Consents, DeleteUser } from '../users/index.ts';

/** What happened to the account. `locked`: its owner has been mailed a link to set a new password. */
type Outcome = 'deleted' | 'secured' | 'locked';

interface Needs {
  consents: Pick<Consents, 'removeSince'>;
  database: Database;
  deleteUser: DeleteUser;
  emailChanges: EmailChangeRows;
  limits: Limits;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  tokens: OneTimeTokens;
  devices: Pick<KnownDevices, 'reportedLogins'>;
}

interface Disowned {
  outcome: Outcome;
  /** The login methods left. */
  kept: ListedMethod[];
}

/** The link “this was not me” of a mail: about the account itself, a login, or an added login method. */
export const createNotMe = (needs: Needs) => {
  const { deleteUser, emailChanges, tokens, outbox, record, devices } = needs;

  /**
   * The account was not requested: removes unproven methods, or the account without any proven one. With only proven
   * methods it ends the sessions, and mails this once, because the link stays in the mail.
   */
  const disownAccount = async ({ em, tables, user, found }: TokenScope, caller: Caller): Promise<Disowned> => {
    // A blocked account stays: otherwise its address would be free for a new one.
    if (!user.isBlocked && !(await hasProvenMethod(em, user))) {
      await deleteUser(em, tables, user);
      return { outcome: 'deleted', kept: [] };
    }
    const hasRemoved = await removeUnprovenMethods(needs, { em, tables, user, caller });
    if (!hasRemoved && found.disownedAt === null) {
      await tokens.markDisowned(tables, found.id);
      await endSessionsOf(tables, user);
      await record(tables, user, { kind: 'sessions-ended' }, caller);
      await outbox.enqueue(tables, { kind: 'sessions-ended', email: user.email, userId: user.id }, caller);
    }
    return { outcome: 'secured', kept: [] };
  };

  /**
   * The login or added method was another person's. Ends every session, forgets all devices, and removes the password,
   * methods of that login's kind, and all added since the token's first act. Mails a reset link.
   */
  const disownLogin = async ({ em, tables, user, found }: TokenScope, caller: Caller): Promise<Disowned> => {
    await tokens.markUsed(tables, found.id);
    await endSessionsOf(tables, user);
    user.forgetLanguages(caller.language());
    await emailChanges.deleteRequested(tables, user);
    const { coversFrom: since } = found;
    const logins = await devices.reportedLogins(tables, user.id, since - CLOCKS_DIFFER_MS);
    await removeConsentsSince(needs, { em, tables, user }, since);
    const { removed, kept } = await removeMethods(em, user, {
      password: true,
      added: (added) => isAddedSince(added, since) || logins.some(({ method }) => method === added.method),
    });
    const details = { methods: methodList(removed) };
    await record(tables, user, { kind: 'not-me', ...(removed.length > 0 && { details }) }, caller);
    const { id: userId, email } = user;
    // Issued here rather than requested: limits, which strangers can exhaust, do not apply, and older links become
    // invalid at once.
    const tokenId = await tokens.issue(tables, user, 'reset-password');
    await outbox.enqueue(tables, { kind: 'reset-password', email, userId, detail: AFTER_NOT_ME, tokenId }, caller);
    return { outcome: 'locked', kept };
  };

  return {
    /**
     * Accepts the token of a verification mail, used or not; or once that of a mail about a login or an added method.
     * INVALID_TOKEN.
     */
    async disown(token: string, caller: Caller): Promise<Disowned> {
      const outcome = await withToken(
        needs,
        {
          purposes: ['verify-email', 'new-device'],
          token,
          caller,
          isUsable: ({ purpose, used, expired }) => !expired && !(used && purpose === 'new-device'),
        },
        (scope) => (scope.found.purpose === 'new-device' ? disownLogin : disownAccount)(scope, caller),
      );
      outbox.wake();
      return outcome;
    },
  };
};
