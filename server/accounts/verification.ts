import type { Caller } from '../activity/caller.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';
import { proveMethodsOf, type UnprovenMethod } from './login-methods.ts';
import { withToken } from './token-use.ts';

/**
 * The mailed token of a new account, with which the owner of the inbox verifies the address.
 */
export const createVerification = (deps: Deps) => {
  const { tokens, outbox, limits, record } = deps;

  return {
    /** Mails a new link to an address that waits for its verification; the answer does not reveal whether it does. */
    async resendVerification(email: string, caller: Caller): Promise<void> {
      await limits.enforce('mailRequest', caller.clientAddress);
      await outbox.request({ kind: 'verify-email', email }, caller);
    },

    /**
     * Verifies the address, proves the login methods that this browser asked for, and answers those that stay unproven.
     * A token that has verified its account may be repeated, within its life also from the right browser after another
     * one: a second click is no error. Rejects with INVALID_TOKEN.
     */
    verifyEmail: (token: string, { caller, browser }: { caller: Caller; browser: string }): Promise<UnprovenMethod[]> =>
      withToken(
        deps,
        { purposes: ['verify-email'], token, caller, isUsable: ({ used, expired }) => used || !expired },
        async ({ em, tables, user, found }) => {
          if (found.expired) return [];
          if (!found.used) {
            await tokens.markUsed(tables, found.id);
            user.verifyEmail();
            await record(tables, user, { kind: 'verified' }, caller);
          }
          return proveMethodsOf(em, user, browserHash(browser));
        },
      ),
  };
};
