import type { Activity } from '../../activity/index.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import { type Credentials, EMAIL_CODE } from '../credentials/index.ts';
import type { Sessions } from '../sessions/index.ts';
import type { Users } from '../users/index.ts';
import { prepareLoginCounts } from './count.ts';
import { createPasskeyLogin } from './passkey.ts';
import { createPasswordLogin } from './password.ts';
import { createPasswordCheck } from './password-check.ts';
import { createReauthentication } from './reauthentication.ts';
import { createLoginRefusals } from './refusals.ts';
import { createSecondFactors } from './second-factors.ts';
import { createLoginSteps, type RestoreAccount } from './steps.ts';

export { knownKey, untilUnlocked } from './attempts.ts';
export { counted } from './count.ts';
export type { PasswordCheck } from './password-check.ts';
export { wrongPassword } from './reauthentication.ts';
export { type LoginRefusals, refuseBlocked } from './refusals.ts';
export { type SecondFactors, secondFactorRequired } from './second-factors.ts';
export { type Entry, type LoginSteps, PENDING_LIFE_MS, unauthenticatedIfVoid } from './steps.ts';

interface Parts {
  database: Database;
  activity: Activity;
  store: KeyValueStore;
  limits: Limits;
  users: Users;
  sessions: Sessions;
  credentials: Credentials;
  restoreAccount: RestoreAccount;
  /** The names of the identity providers. */
  providers: readonly ProviderName[];
  /** Whether mailed codes log in. */
  emailCodes: boolean;
}

/** The steps from a credential to a session, and reauthentication within one. */
export function createLogin(parts: Parts) {
  const { users, sessions, credentials, providers, emailCodes } = parts;
  const { passwords, policy, assertions, totp: app, useRecoveryCode } = credentials;
  const { devices } = sessions;
  prepareLoginCounts(emailCodes ? [EMAIL_CODE, ...providers] : providers);
  const recordRefusal = createLoginRefusals(parts);
  const checkPassword = createPasswordCheck({ ...parts, passwords, devices, recordRefusal });
  const secondFactors = createSecondFactors({ ...parts, app, assertions, devices, recordRefusal, useRecoveryCode });
  const steps = createLoginSteps({ ...parts, users, secondFactors, recordRefusal });
  const { completeFirstFactor } = steps;
  return {
    steps,
    password: createPasswordLogin({ ...parts, passwords, policy, checkPassword, recordRefusal, completeFirstFactor }),
    passkey: createPasskeyLogin({ ...parts, assertions, recordRefusal, completeFirstFactor }),
    reauthentication: createReauthentication({ sessions, checkPassword, secondFactors }),
    checkPassword,
    secondFactors,
    recordRefusal,
  };
}

export type Login = ReturnType<typeof createLogin>;
