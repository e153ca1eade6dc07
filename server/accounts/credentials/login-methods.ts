/**
 * A login method is a password, a linked identity or a passkey. It is *proven* if the owner of the inbox added it,
 * which is known in four cases:
 * - the mail was confirmed in the browser that requested it, by its link or by a code;
 * - the provider vouches for exactly the account's address;
 * - it was set by a mailed reset;
 * - it was added in a session of an account with only proven methods.
 * An attacker may have added any other method ("Pre-hijacked accounts", USENIX Security 2022), so it is unproven and
 * removed as soon as the owner acts. An authenticator app gives no access but could lock the owner out, so it requires
 * an account with only proven methods.
 * When the owner acts and an unproven method existed, more is removed: all sessions and mailed tokens, which it may
 * have opened or requested, and all consents and languages, which it may have set. A mail lists the removed methods,
 * because the owner may have added them; a password that the owner replaces is not listed.
 */
import { Identity, Passkey, RecoveryCode, Totp, type User } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import type { AllTables, EntityManager } from '../../parts/database/contract.ts';
import type { LoginMethod, OwnMethod, ProviderName } from '../../shared/method-names.ts';
import type { OneTimeTokens, RecordEvent } from '../mail/index.ts';
import { endSessionsOf } from '../sessions/index.ts';
import type { Consents, LockedUser } from '../users/index.ts';

/** The removed methods for events and mails, without duplicates, at most 255 characters. */
export const methodList = (methods: readonly LoginMethod[]): string => [...new Set(methods)].join(',').slice(0, 255);

/** A login method as shown to its user. `addedAt` in milliseconds since 1970. */
export interface ListedMethod {
  method: LoginMethod;
  addedAt: number;
}

export const PASSWORD = 'password' as const satisfies OwnMethod;
export const PASSKEY = 'passkey' as const satisfies OwnMethod;
export const EMAIL_CODE = 'email-code' as const satisfies OwnMethod;
export const TOTP = 'totp' as const satisfies OwnMethod;
export const RECOVERY = 'recovery' as const satisfies OwnMethod;

/** A method added to the password: an identity (by provider name), passkey, authenticator app or recovery code. */
interface AddedMethod {
  method: LoginMethod;
  proven: boolean;
  /** Milliseconds since 1970, by the clock of the process that added it. */
  createdAt: number;
}

/** The tolerated difference between the clocks of the database and of a process. */
export const CLOCKS_DIFFER_MS = 10 * 60_000;

export const identitiesOf = (em: EntityManager, user: User) =>
  em.find(Identity, { userId: user.id }, { orderBy: { createdAt: 'asc' } });

export const hasPasskey = async (em: EntityManager, user: User): Promise<boolean> =>
  (await em.count(Passkey, { userId: user.id })) > 0;

/**
 * They give no access by themselves. They are always proven, because they require an account with only proven methods.
 */
const secondFactors: readonly LoginMethod[] = [TOTP, RECOVERY];

type AddedRow = Identity | Passkey | Totp | RecoveryCode;

/** All added methods, with their rows. */
async function addedBy(em: EntityManager, user: User): Promise<(AddedMethod & { row: AddedRow })[]> {
  const ofUser = { userId: user.id };
  const ways = [
    ...(await identitiesOf(em, user)).map((row) => ({ method: row.provider, proven: row.proven, row })),
    ...(await em.find(Passkey, ofUser)).map((row) => ({ method: PASSKEY, proven: row.proven, row })),
  ];
  const others = [
    ...(await em.find(Totp, ofUser)).map((row) => ({ method: TOTP, proven: true, row })),
    ...(await em.find(RecoveryCode, ofUser)).map((row) => ({ method: RECOVERY, proven: true, row })),
  ];
  return [...ways, ...others].map((added) => ({ ...added, createdAt: added.row.createdAt }));
}

/** An unproven password is as old as the account, unless it was first set in a session. */
const unprovenPassword = (user: User): ListedMethod[] =>
  user.hasUnprovenPassword ? [{ method: PASSWORD, addedAt: user.createdAt }] : [];

/**
 * The mail was confirmed in this browser: proves the methods that it requested. Resolves to whether there were any, and
 * to the unproven rest; only passwords and identities can exist before the confirmation.
 */
export async function proveMethodsOf(
  em: EntityManager,
  user: LockedUser,
  browser: string,
): Promise<{ hasProven: boolean; unproven: ListedMethod[] }> {
  const identities = await identitiesOf(em, user);
  const isPasswordOwn = user.passwordBrowser === browser;
  const own = identities.filter((identity) => identity.browser === browser);
  if (isPasswordOwn) user.provePassword();
  for (const identity of own) identity.prove();
  const unproven = identities.filter(({ proven }) => !proven);
  return {
    hasProven: isPasswordOwn || own.length > 0,
    unproven: [
      ...unprovenPassword(user),
      ...unproven.map(({ provider, createdAt }) => ({ method: provider, addedAt: createdAt })),
    ],
  };
}

/** Whether the user has a proven login method. */
export async function hasProvenMethod(em: EntityManager, user: User): Promise<boolean> {
  return (
    user.passwordProven ||
    (await addedBy(em, user)).some(({ proven, method }) => proven && !secondFactors.includes(method))
  );
}

export async function hasLoginMethod(em: EntityManager, user: User): Promise<boolean> {
  return user.hasPassword || (await identitiesOf(em, user)).length > 0 || (await hasPasskey(em, user));
}

/** Whether a user can still log in. Identities count only at configured providers. */
export async function canLogIn(em: EntityManager, user: User, providers: readonly ProviderName[]): Promise<boolean> {
  const identities = await identitiesOf(em, user);
  return user.hasPassword || identities.some(({ provider }) => providers.includes(provider)) || hasPasskey(em, user);
}

/** Sets `provider` of the user to a login method that is left. `left`: the remaining identities. */
export function keepProviderOf(user: LockedUser, left: Identity[]): void {
  const providers = left.map(({ provider }) => provider);
  user.keepProviderAmong(user.hasPassword ? ['email', ...providers] : providers);
}

/** Whether every login method is proven: then a method added in a session is proven too. */
export const hasOnlyProvenMethods = async (em: EntityManager, user: User): Promise<boolean> =>
  !user.hasUnprovenPassword && (await addedBy(em, user)).every(({ proven }) => proven);

/** Whether a method was added since a time (database clock, milliseconds since 1970). */
export const isAddedSince = ({ createdAt }: AddedMethod, since: number): boolean =>
  createdAt >= since - CLOCKS_DIFFER_MS;

/**
 * Removes the password, if requested, and some added methods; recovery codes go with the app. Resolves to the removed
 * methods, such as `password` and `github`, and to those left that the mail lists.
 */
export async function removeMethods(
  em: EntityManager,
  user: LockedUser,
  { password, added: isRemoved }: { password: boolean; added: (added: AddedMethod) => boolean },
): Promise<{ removed: LoginMethod[]; kept: ListedMethod[] }> {
  const added = await addedBy(em, user);
  const removed = added.filter(isRemoved);
  const methods = [...(password && user.hasPassword ? [PASSWORD] : []), ...removed.map(({ method }) => method)];
  if (password) user.removePassword();
  for (const { row } of removed) em.remove(row);
  if (removed.some(({ method }) => method === TOTP)) await em.nativeDelete(RecoveryCode, { userId: user.id });
  const left = added.filter((one) => !removed.includes(one));
  keepProviderOf(
    user,
    left.map(({ row }) => row).filter((row) => row instanceof Identity),
  );
  const listed = left.filter(({ method }) => method !== RECOVERY);
  return { removed: methods, kept: listed.map(({ method, createdAt }) => ({ method, addedAt: createdAt })) };
}

/** The other things to remove and revoke, and the mail to send. */
interface OwnerActs {
  consents: Pick<Consents, 'removeSince'>;
  tokens: Pick<OneTimeTokens, 'revokeAll'>;
  record: RecordEvent;
}

interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: LockedUser;
}

/**
 * The owner of the inbox has acted: removes unproven methods. `newPassword`: the hash that replaces the password.
 * Resolves to whether any was removed. Call `outbox.wake` after the commit.
 */
export async function removeUnprovenMethods(
  { consents, tokens, record }: OwnerActs,
  { em, tables, user, caller, newPassword }: Scope & { caller: Caller; newPassword?: string },
): Promise<boolean> {
  const { hasUnprovenPassword } = user;
  if (newPassword !== undefined) {
    user.changePassword(newPassword);
    user.provePassword();
  }
  const { removed: methods } = await removeMethods(em, user, {
    password: user.hasUnprovenPassword,
    added: ({ proven }) => !proven,
  });
  if (hasUnprovenPassword || methods.length > 0) {
    await consents.removeSince(tables, user.id, 0);
    user.forgetLanguages(caller.language());
  }
  if (methods.length === 0) return false;
  await endSessionsOf(tables, user);
  await tokens.revokeAll(tables, user);
  await record(tables, user, { kind: 'login-methods-removed', details: { methods: methodList(methods) } }, caller);
  return true;
}

/**
 * Another person may have used the account since a time (database clock): removes methods added since and informs the
 * owner by mail. Call `outbox.wake` after the commit.
 */
export async function removeAddedSince(
  { record }: Pick<OwnerActs, 'record'>,
  { em, tables, user, caller }: Scope & { caller: Caller },
  since: number,
): Promise<void> {
  const { removed: methods } = await removeMethods(em, user, {
    password: false,
    added: (added) => isAddedSince(added, since),
  });
  if (methods.length === 0) return;
  await record(tables, user, { kind: 'login-methods-removed', details: { methods: methodList(methods) } }, caller);
}

/**
 * Another person has used the account since a time (database clock): removes consents given since, or all if a method
 * is unproven. Call it before methods are removed.
 */
export async function removeConsentsSince(
  { consents }: Pick<OwnerActs, 'consents'>,
  { em, tables, user }: Scope,
  since: number,
): Promise<void> {
  await consents.removeSince(tables, user.id, (await hasOnlyProvenMethods(em, user)) ? since : 0);
}
