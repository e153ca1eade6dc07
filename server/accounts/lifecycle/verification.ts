import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { hashOf } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import { type ListedMethod, proveMethodsOf } from '../credentials/index.ts';
import { untilUnlocked } from '../login/index.ts';
import { mailKinds, type OneTimeTokens, type Outbox, type RecordEvent, withToken } from '../mail/index.ts';
import type { DeviceRequest, KnownDevices } from '../sessions/index.ts';

/** How many guesses at the code of one mail are looked at. */
const MAX_GUESSES = 5;

interface Needs {
  database: Database;
  limits: Limits;
  store: Pick<KeyValueStore, 'counter'>;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  tokens: OneTimeTokens;
  devices: Pick<KnownDevices, 'mark'>;
}

/** The browser that confirms the mail. */
interface Confirming {
  request: DeviceRequest;
  /** Its id. */
  browser: string;
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

/** Verification of a new account's address by a mailed token, or by the code beside it. */
export const createVerification = (needs: Needs) => {
  const { tokens, outbox, limits, record, devices, database } = needs;
  const guesses = needs.store.counter({
    name: 'verification-code-guesses',
    points: MAX_GUESSES,
    seconds: mailKinds['verify-email'].lifeMs / 1000,
  });

  const verifyEmail = (token: string, { request, browser }: Confirming): Promise<Verified> =>
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
    );

  /** The token for which a code stands in this browser. Guesses are counted before they are answered. */
  const tokenByCode = async (code: string, { browser }: Confirming): Promise<string | undefined> => {
    const sent = await database.query((tables) => tokens.findInBrowser(tables, hashOf(browser)));
    if (!sent) return undefined;
    const token = tokens.tokenByCode(sent, code);
    if (!(await guesses(sent.id)).allowed) return undefined;
    const refund = await limits.enforce('code', untilUnlocked(sent.userId, sent));
    if (token !== undefined) await refund();
    return token;
  };

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
    verifyEmail,

    /**
     * The same by the code in the mail, for the latest account that this browser registered: six digits prove nothing
     * elsewhere. INVALID_CODE, counted as a refused token too.
     */
    async verifyCode(code: string, confirming: Confirming): Promise<Verified> {
      const token = await tokenByCode(code, confirming);
      if (token === undefined) {
        await limits.enforce('token', confirming.request.clientAddress);
        throw new ServiceError('INVALID_CODE');
      }
      return verifyEmail(token, confirming);
    },
  };
};
