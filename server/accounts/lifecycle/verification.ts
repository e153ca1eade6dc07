import type { Caller } from '../../activity/caller.ts';
import { hashOf } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import { type ListedMethod, proveMethodsOf } from '../credentials/index.ts';
import { type OneTimeTokens, type Outbox, type RecordEvent, withToken } from '../mail/index.ts';
import type { DeviceRequest, KnownDevices } from '../sessions/index.ts';

interface Needs {
  database: Database;
  limits: Limits;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  tokens: OneTimeTokens;
  devices: Pick<KnownDevices, 'mark'>;
}

/** The result for the browser that confirmed the mail. */
export interface Verified {
  /** Login methods that another person may have added. */
  unproven: ListedMethod[];
  /** The new device cookie of the browser that requested the account: its first login is not reported. */
  deviceCookie: string | undefined;
  /** The target of the link. */
  returnTo: string | null;
}

/** Verification of a new account's address by a mailed token. */
export const createVerification = (needs: Needs) => {
  const { tokens, outbox, limits, record, devices } = needs;

  return {
    /** Mails a new link to an unverified address. The response does not reveal whether it is one. */
    async resendVerification(email: string, returnTo: string | undefined, caller: Caller): Promise<void> {
      await limits.enforce('mailRequest', caller.clientAddress);
      await outbox.request({ kind: 'verify-email', email }, { ...caller, returnTo });
    },

    /**
     * Verifies the address and proves the methods that this browser requested; its device becomes known. Repeating a
     * used token is no error; within its life it still proves the methods of the right browser. INVALID_TOKEN.
     */
    verifyEmail: (
      token: string,
      { request, browser }: { request: DeviceRequest; browser: string },
    ): Promise<Verified> =>
      withToken(
        needs,
        { purposes: ['verify-email'], token, caller: request, isUsable: ({ used, expired }) => used || !expired },
        async ({ em, tables, user, found }) => {
          const { returnTo } = found;
          if (found.expired) return { unproven: [], deviceCookie: undefined, returnTo };
          if (!found.used) {
            await tokens.markUsed(tables, found.id);
            user.verifyEmail();
            await record(tables, user, { kind: 'verified' }, request);
          }
          const { hasProven, unproven } = await proveMethodsOf(em, user, hashOf(browser));
          const deviceCookie = hasProven ? devices.mark(request.deviceCookie, user) : undefined;
          return { unproven, deviceCookie, returnTo };
        },
      ),
  };
};
