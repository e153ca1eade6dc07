import type { KnownKey } from '../../limits/index.ts';
import type { LoginAccount } from '../users/index.ts';

/** The key that counts an account's wrong credentials until an administrator unlocks it. Keys without an account never change. */
export const untilUnlocked = (key: string, account: Pick<LoginAccount, 'limitEpoch'> | undefined): string =>
  account?.limitEpoch ? `${key}:${account.limitEpoch}` : key;

/** The counter of a device or session known to the account, and the counter shared by all of them. */
export const knownKey = (account: Pick<LoginAccount, 'user' | 'limitEpoch'>, knownBy: string): KnownKey => ({
  own: untilUnlocked(`${account.user.id}:${knownBy}`, account),
  shared: untilUnlocked(`${account.user.id}:known`, account),
});
