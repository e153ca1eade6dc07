/**
 * The password check of every place that asks for a password. Attempts at all of them count together per client
 * address, wrong ones also per account. Each device known to the account and each of its sessions has a counter of its
 * own, besides one that all of these share: guesses from elsewhere do not lock them out (OWASP, "Device cookies"). An
 * unknown address, a wrong password and an account without a password get the same response after the same time.
 * Refusals are recorded after the response.
 */
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { hashOf } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import { ignored } from '../../telemetry/background.ts';
import type { Passwords } from '../credentials/index.ts';
import type { KnownDevices, Session } from '../sessions/index.ts';
import type { Account, Users } from '../users/index.ts';
import { knownKey, untilUnlocked } from './attempts.ts';
import type { LoginRefusals } from './refusals.ts';

/** A user whose password was right, as read before the check. */
export interface CheckedPassword {
  user: Account;
  passwordHash: string;
  hasApp: boolean;
  /** Whether the user has requested deletion. */
  isDeleted: boolean;
  isBlocked: boolean;
}

/** The request that contains a password: a login, maybe from a known device, or one in a session. */
type PasswordRequest = Caller & {
  deviceCookie?: string | undefined;
  session?: Session;
};

export type PasswordCheck = (
  given: { email: string; password: string },
  request: PasswordRequest,
  wording?: { message: string },
) => Promise<CheckedPassword>;

interface Rules {
  limits: Limits;
  users: Pick<Users, 'findCredential'>;
  passwords: Pick<Passwords, 'verify'>;
  devices: Pick<KnownDevices, 'knownBy'>;
  recordRefusal: LoginRefusals;
}

/** Checks the password of an account. INVALID_CREDENTIALS; past a limit RATE_LIMITED, before hashing. */
export const createPasswordCheck = ({ limits, users, passwords, devices, recordRefusal }: Rules): PasswordCheck => {
  /** Counts the attempt before the check, so concurrent attempts cannot exceed the limit. */
  const admit = async (email: string, request: PasswordRequest) => {
    await limits.enforce('login', request.clientAddress);
    const found = await users.findCredential(email);
    const known = devices.knownBy(found, request);
    const refund = await (found && known !== undefined
      ? limits.enforce('device', knownKey(found, known))
      : limits.enforce('account', untilUnlocked(hashOf(email), found)));
    return { found, refund };
  };

  return async ({ email, password }, request, wording) => {
    const { found, refund } = await admit(email, request).catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'RATE_LIMITED') recordRefusal(email, 'limited', request);
      throw error;
    });
    const stored = found?.passwordHash ?? null;
    const isRight = await passwords.verify(password, stored, found?.user.id).catch(async (error: unknown) => {
      await refund();
      throw error;
    });
    if (!found?.passwordHash || !isRight) {
      recordRefusal(email, 'wrong-password', request);
      throw new ServiceError('INVALID_CREDENTIALS', wording);
    }
    // Concurrent with what follows.
    refund().catch(ignored('refund_attempt'));
    return { ...found, passwordHash: found.passwordHash };
  };
};
