import type { Config } from '../../config/index.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { Secrets } from '../../secrets.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Outbox, RecordEvent } from '../mail/index.ts';
import type { Sessions } from '../sessions/index.ts';
import { createPasskeyAssertions } from './passkeys/assertions.ts';
import { createPasskeyChallenges } from './passkeys/challenges.ts';
import { createPasskeys } from './passkeys/passkeys.ts';
import { createWebAuthn } from './passkeys/webauthn.ts';
import { createPasswords } from './passwords/passwords.ts';
import { createPasswordPolicy } from './passwords/policy/policy.ts';
import { createRecoveryCodeUse } from './totp/recovery-codes.ts';
import { createTotp } from './totp/totp.ts';

export { addedMethodsOf } from './added-methods.ts';
export {
  CLOCKS_DIFFER_MS,
  canLogIn,
  EMAIL_CODE,
  hasLoginMethod,
  hasOnlyProvenMethods,
  hasProvenMethod,
  identitiesOf,
  isAddedSince,
  keepProviderOf,
  type ListedMethod,
  methodList,
  PASSKEY,
  PASSWORD,
  proveMethodsOf,
  RECOVERY,
  removeAddedSince,
  removeConsentsSince,
  removeMethods,
  removeUnprovenMethods,
  TOTP,
} from './login-methods.ts';
export type { Asked, Assertion, PasskeyAssertions } from './passkeys/assertions.ts';
export type { RegistrationMode } from './passkeys/challenges.ts';
export type { ListedPasskey, Passkeys } from './passkeys/passkeys.ts';
export type { AssertionResponse, RequestOptions } from './passkeys/webauthn.ts';
export { readHash } from './passwords/hashes/index.ts';
export type { Passwords } from './passwords/passwords.ts';
export type { PasswordPolicy } from './passwords/policy/policy.ts';
export type { RecoveryCodeUse } from './totp/recovery-codes.ts';
export { type AuthenticatorApp, removeApp } from './totp/totp.ts';

interface Parts {
  database: Database;
  store: KeyValueStore;
  limits: Limits;
  outbox: Outbox;
  record: RecordEvent;
  sessions: Sessions;
  /** The names of the identity providers. */
  providers: readonly ProviderName[];
  secrets: Secrets;
  log: Log;
}

/** Credentials: password hashes, passkeys and authenticator apps. */
export function createCredentials(config: Config, parts: Parts) {
  const { appUrl, siteName, passwordIterations, cores } = config;
  const challenges = createPasskeyChallenges(parts.store);
  const webauthn = createWebAuthn(appUrl, { name: siteName });
  return {
    passwords: createPasswords({ iterations: passwordIterations, cores, log: parts.log }),
    policy: createPasswordPolicy({ ...config, log: parts.log }),
    passkeys: createPasskeys({ ...parts, challenges, webauthn }),
    assertions: createPasskeyAssertions({ database: parts.database, challenges, webauthn }),
    useRecoveryCode: createRecoveryCodeUse(parts),
    totp: createTotp({ ...parts, devices: parts.sessions.devices, issuer: siteName }),
  };
}

export type Credentials = ReturnType<typeof createCredentials>;
