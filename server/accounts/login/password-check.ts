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

/** A user who gave the right password, as read before the check. */
interface CheckedPassword {
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

/** Checks a password, then does what it was given for. Both are one attempt, which does not count if a part was away. */
export type PasswordCheck = <Result>(
  given: { email: string; password: string },
  request: PasswordRequest,
  onRight: (checked: CheckedPassword) => Promise<Result>,
  wording?: { message: string },
) => Promise<Result>;

interface Rules {
  limits: Limits;
  users: Pick<Users, 'findCredential'>;
  passwords: Pick<Passwords, 'verify'>;
  devices: Pick<KnownDevices, 'knownBy'>;
  recordRefusal: LoginRefusals;
}

/** Checks the password of an account. INVALID_CREDENTIALS; past a limit RATE_LIMITED, before hashing. */
export const createPasswordCheck = ({ limits, users, passwords, devices, recordRefusal }: Rules): PasswordCheck => {
  return ({ email, password }, request, onRight, wording) => {
    const onLimited = () => recordRefusal(email, 'limited', request);

    const check = async (): Promise<CheckedPassword> => {
      const found = await users.findCredential(email);
      const known = devices.knownBy(found, request);
      const verify = async (refund: () => Promise<void>) => {
        const isRight = await passwords.verify(password, found?.passwordHash ?? null, found?.user.id);
        if (!found?.passwordHash || !isRight) {
          recordRefusal(email, 'wrong-password', request);
          throw new ServiceError('INVALID_CREDENTIALS', wording);
        }
        // Concurrent with what follows.
        refund().catch(ignored('refund_attempt'));
        return { ...found, passwordHash: found.passwordHash };
      };
      // Counted before the check, so that concurrent attempts cannot exceed the limit.
      return found && known !== undefined
        ? limits.attempt('device', knownKey(found, known), verify, onLimited)
        : limits.attempt('account', untilUnlocked(hashOf(email), found), verify, onLimited);
    };

    return limits.attempt('login', request.clientAddress, async () => onRight(await check()), onLimited);
  };
};
