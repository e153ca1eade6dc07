import { hash } from 'node:crypto';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { Deps } from './deps.ts';
import type { KnownDevices } from './known-devices.ts';
import { untilUnlocked } from './limits.ts';
import type { LoginRefusals } from './login-refusals.ts';
import type { Session } from './sessions.ts';
import type { Account } from './users.ts';

/** A user whose password was right, as read before it was checked. */
export interface CheckedPassword {
  user: Account;
  passwordHash: string;
  hasApp: boolean;
  /** Whether the user has asked for deletion. */
  isDeleted: boolean;
  isBlocked: boolean;
}

/** Where a password is given: at a login, from a device that may be known, or in a session. */
interface PasswordRequest extends Caller {
  deviceCookie?: string | undefined;
  session?: Session;
}

export type PasswordCheck = (
  given: { email: string; password: string },
  request: PasswordRequest,
  wording?: { message: string },
) => Promise<CheckedPassword>;

interface Rules {
  devices: Pick<KnownDevices, 'knownBy'>;
  recordRefusal: LoginRefusals;
}

/**
 * Checks the password of an account, wherever one is asked for: the attempts at all these places count together, per
 * client address, and the wrong ones per account too. A device that is known to the account, and a session of it, have a count
 * of their own: guesses from elsewhere do not shut them out (OWASP, "Device cookies"). Unknown address, wrong password and an
 * account without one have the same answers after the same time: INVALID_CREDENTIALS, and past a limit RATE_LIMITED, before
 * the password is hashed. Refusals are recorded behind the answer.
 */
export const createPasswordCheck = (
  { limits, users, passwords }: Pick<Deps, 'limits' | 'users' | 'passwords'>,
  { devices, recordRefusal }: Rules,
): PasswordCheck => {
  /** Counts the attempt before the password is looked at: of any number at once no more than the limit are looked at. */
  const admit = async (email: string, request: PasswordRequest) => {
    await limits.enforce('login', request.clientAddress);
    const found = await users.findCredential(email);
    const id = devices.knownBy(found, request);
    const giveBack = await (id === undefined
      ? limits.enforce('account', untilUnlocked(hash('sha256', email, 'base64url'), found))
      : limits.enforce('device', untilUnlocked(`${found?.user.id}:${id}`, found)));
    return { found, giveBack };
  };

  return async ({ email, password }, request, wording) => {
    const { found, giveBack } = await admit(email, request).catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'RATE_LIMITED') recordRefusal(email, 'limited', request);
      throw error;
    });
    const stored = found?.passwordHash ?? null;
    const isRight = await passwords.verify(password, stored, found?.user.id).catch(async (error: unknown) => {
      await giveBack();
      throw error;
    });
    if (!found?.passwordHash || !isRight) {
      recordRefusal(email, 'wrong-password', request);
      throw new ServiceError('INVALID_CREDENTIALS', wording);
    }
    // Beside what follows: the store takes both at once. What it misses counts as an attempt.
    giveBack().catch(() => undefined);
    return { ...found, passwordHash: found.passwordHash };
  };
};
