import { Identity, Passkey, RecoveryCode, Totp, type User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { AllTables, EntityManager } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import { endSessionsOf } from './sessions-of-user.ts';

/**
 * A login method is the password of a user, a linked identity or a passkey. It is *proven* if the owner of the inbox added it:
 * the mail was confirmed in the browser that asked for it, the provider vouches for exactly the account's address, or
 * it came by a mailed reset; and if it was added in a session of an account of which every login method is proven. Any
 * other method stays unproven, because an attacker may have added it, and is removed as soon as the owner acts
 * ("Pre-hijacked accounts", USENIX Security 2022). An authenticator app, which is no way in but could keep the owner out, takes
 * an account of which every method is proven. All of this happens under the lock on the user.
 */

/** What was removed, as events and mails tell of it: each once, at most 255 characters; nothing if there was none. */
export const methodsDetail = (methods: readonly string[]): { methods?: string } =>
  methods.length > 0 ? { methods: [...new Set(methods)].join(',').slice(0, 255) } : {};

/** A login method that is not proven. `addedAt` in milliseconds since 1970. */
export interface UnprovenMethod {
  /** `password`, or the name of the identity's provider. Before the mail is confirmed nobody can add anything else. */
  method: string;
  addedAt: number;
}

export const PASSWORD = 'password';
export const PASSKEY = 'passkey';
export const TOTP = 'totp';
export const RECOVERY = 'recovery';

/** What was added to the password: an identity, by the name of its provider, a passkey, an authenticator app, a recovery code. */
export interface AddedMethod {
  method: string;
  proven: boolean;
  /** Milliseconds since 1970, by the clock of the process that added it. */
  createdAt: number;
}

/** How far the clocks of the database and of a process may differ. */
const CLOCKS_DIFFER_MS = 10 * 60_000;

export const identitiesOf = (em: EntityManager, user: User) =>
  em.find(Identity, { userId: user.id }, { orderBy: { createdAt: 'asc' } });

export const hasPasskey = async (em: EntityManager, user: User): Promise<boolean> =>
  (await em.count(Passkey, { userId: user.id })) > 0;

/** What lets nobody in by itself. It is always proven: nobody gets it while anything else is not. */
const secondFactors = [TOTP, RECOVERY];

type AddedRow = Identity | Passkey | Totp | RecoveryCode;

/** All that was added, with its row. */
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

/** An unproven password is as old as the account, but for a first one that was set in a session. */
const unprovenPassword = (user: User): UnprovenMethod[] =>
  user.hasUnprovenPassword ? [{ method: PASSWORD, addedAt: user.createdAt }] : [];

/** The mail was confirmed in this browser: the methods that it asked for are proven. Answers the ones left unproven. */
export async function proveMethodsOf(em: EntityManager, user: User, browser: string): Promise<UnprovenMethod[]> {
  const identities = await identitiesOf(em, user);
  if (user.passwordBrowser === browser) user.provePassword();
  for (const identity of identities) if (identity.browser === browser) identity.prove();
  const unproven = identities.filter(({ proven }) => !proven);
  return [
    ...unprovenPassword(user),
    ...unproven.map(({ provider, createdAt }) => ({ method: provider, addedAt: createdAt })),
  ];
}

/** Whether the owner of the inbox has a login method. */
export async function hasProvenMethod(em: EntityManager, user: User): Promise<boolean> {
  return (
    user.passwordProven ||
    (await addedBy(em, user)).some(({ proven, method }) => proven && !secondFactors.includes(method))
  );
}

export async function hasLoginMethod(em: EntityManager, user: User): Promise<boolean> {
  return user.hasPassword || (await identitiesOf(em, user)).length > 0 || (await hasPasskey(em, user));
}

/** Whether a user can still log in. An identity counts only at a configured provider. */
export async function hasWayIn(em: EntityManager, user: User, providers: readonly string[]): Promise<boolean> {
  const identities = await identitiesOf(em, user);
  return user.hasPassword || identities.some(({ provider }) => providers.includes(provider)) || hasPasskey(em, user);
}

/** `provider` of the user goes on naming a login method of the account, whose identities are `left`. */
export function keepProviderOf(user: User, left: Identity[]): void {
  const providers = left.map(({ provider }) => provider);
  user.keepProviderAmong(user.hasPassword ? ['email', ...providers] : providers);
}

/** Whether the owner of the inbox has added every login method: what is added by one of them is the owner's too. */
export const hasOnlyProvenMethods = async (em: EntityManager, user: User): Promise<boolean> =>
  !user.hasUnprovenPassword && (await addedBy(em, user)).every(({ proven }) => proven);

/** Whether a method was added since a time by the database's clock, in milliseconds since 1970. */
export const isAddedSince = ({ createdAt }: AddedMethod, since: number): boolean =>
  createdAt >= since - CLOCKS_DIFFER_MS;

/**
 * Removes the password, where asked to, and some of what was added by a user whose row is locked; with the authenticator app go
 * the recovery codes. Answers what it removed, such as `password` and `github`.
 */
export async function removeMethods(
  em: EntityManager,
  user: User,
  { password, added: isRemoved }: { password: boolean; added: (added: AddedMethod) => boolean },
): Promise<string[]> {
  const added = await addedBy(em, user);
  const removed = added.filter(isRemoved);
  const methods = [...(password && user.hasPassword ? [PASSWORD] : []), ...removed.map(({ method }) => method)];
  if (password) user.removePassword();
  for (const { row } of removed) em.remove(row);
  if (removed.some(({ method }) => method === TOTP)) await em.nativeDelete(RecoveryCode, { userId: user.id });
  const left = added.filter((one) => !removed.includes(one)).map(({ row }) => row);
  keepProviderOf(
    user,
    left.filter((row) => row instanceof Identity),
  );
  return methods;
}

/** A locked user, and the transaction that holds the lock. */
interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: User;
}

/**
 * The owner of the inbox has acted: removes every unproven method, and if there was any, all sessions and mailed tokens
 * too, because it may have opened or requested them, and all consents and languages, which it may have given. The owner, who may have added
 * the methods after all, is informed by mail, but not of a password that the owner replaces: `newPassword` is the hash of one.
 * Answers whether any was removed; call `outbox.wake` after the commit.
 */
export async function removeUnprovenMethods(
  { consents, tokens, record }: Pick<Deps, 'consents' | 'tokens' | 'record'>,
  { em, tables, user, caller, newPassword }: Scope & { caller: Caller; newPassword?: string },
): Promise<boolean> {
  const { hasUnprovenPassword } = user;
  if (newPassword !== undefined) {
    user.changePassword(newPassword);
    user.provePassword();
  }
  const methods = await removeMethods(em, user, {
    password: user.hasUnprovenPassword,
    added: ({ proven }) => !proven,
  });
  if (hasUnprovenPassword || methods.length > 0) {
    await consents.removeSince(tables, user.id, 0);
    user.forgetLanguages(caller.language());
  }
  if (methods.length === 0) return false;
  await endSessionsOf(tables, user);
  user.forgetDevices();
  await tokens.revokeAll(tables, user.id);
  await record(tables, user, { kind: 'login-methods-removed', details: methodsDetail(methods) }, caller);
  return true;
}

/**
 * Another person has used the account since a time by the database's clock: removes the consents since then, and all of them
 * where a method is unproven. Call it before methods are removed.
 */
export async function removeConsentsSince(
  { consents }: Pick<Deps, 'consents'>,
  { em, tables, user }: Scope,
  since: number,
): Promise<void> {
  await consents.removeSince(tables, user.id, (await hasOnlyProvenMethods(em, user)) ? since : 0);
}
