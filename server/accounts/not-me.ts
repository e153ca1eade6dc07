import type { Caller } from '../activity/caller.ts';
import type { Deps } from './deps.ts';
import type { KnownDevices } from './known-devices.ts';
import {
  hasProvenMethod,
  isAddedSince,
  methodsDetail,
  removeConsentsSince,
  removeMethods,
  removeUnprovenMethods,
} from './login-methods.ts';
import { AFTER_NOT_ME, mailKinds } from './mail-kinds.ts';
import { endSessionsOf } from './sessions-of-user.ts';
import { type TokenScope, withToken } from './token-use.ts';

/** What becomes of an account: `locked` is one whose owner sets a new password by the mail that is on its way. */
export type Disowned = 'deleted' | 'secured' | 'locked';

/** What users say was not theirs, by the link of a mail: the account itself, or a login. */
export const createNotMe = (deps: Deps, { reportedLogins }: Pick<KnownDevices, 'reportedLogins'>) => {
  const { deleteUser, emailChanges, tokens, outbox, record } = deps;

  /** The account was not asked for: removes what is unproven, or the account if there is nothing else. */
  const disownAccount = async ({ em, tables, user }: TokenScope, caller: Caller): Promise<Disowned> => {
    // A blocked one stays: its address would be free for another account.
    if (!user.isBlocked && !(await hasProvenMethod(em, user))) {
      await deleteUser(em, tables, user);
      return 'deleted';
    }
    if (!(await removeUnprovenMethods(deps, { em, tables, user, caller }))) {
      await endSessionsOf(tables, user);
      await record(tables, user, { kind: 'sessions-ended' }, caller);
    }
    return 'secured';
  };

  /**
   * A login was not the user's: another person knows the password, or has what the login came by. Ends every
   * session, removes the password, what such a login came by otherwise (the passkeys, the identities of a provider), and
   * what was added since; makes every device unknown; and mails a link to set a new password.
   */
  const disownLogin = async ({ em, tables, user, found }: TokenScope, caller: Caller): Promise<Disowned> => {
    await tokens.markUsed(tables, found.id);
    await endSessionsOf(tables, user);
    user.forgetDevices();
    user.forgetLanguages(caller.language());
    await emailChanges.forgetAsked(tables, user.id);
    const logins = await reportedLogins(tables, user.id, mailKinds['new-device'].lifeMs);
    // No login is left where the mail was sent after they were disowned.
    const since = Math.min(Number.MAX_SAFE_INTEGER, ...logins.map(({ at }) => at));
    await removeConsentsSince(deps, { em, tables, user }, since);
    const methods = await removeMethods(em, user, {
      password: true,
      added: (added) => isAddedSince(added, since) || logins.some(({ method }) => method === added.method),
    });
    const details = methodsDetail(methods);
    await record(tables, user, { kind: 'not-me', ...(methods.length > 0 && { details }) }, caller);
    const { id: userId, email } = user;
    await outbox.enqueue(tables, { kind: 'reset-password', email, userId, detail: AFTER_NOT_ME }, caller);
    return 'locked';
  };

  return {
    /**
     * Takes the token of the verification mail, used or not, of a person who did not ask for the account; or that of the mail
     * about a login from a new device, once. Rejects with INVALID_TOKEN.
     */
    async disown(token: string, caller: Caller): Promise<Disowned> {
      const outcome = await withToken(
        deps,
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
