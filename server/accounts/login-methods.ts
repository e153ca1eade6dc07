import { Identity, type User } from '../../entities/index.ts';
import type { AllTables, EntityManager } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import { endSessionsOf } from './session-rows.ts';

/**
 * A login method is the password of a user, or a linked identity. It is *proven* if the owner of the inbox added it:
 * the mail was confirmed in the browser that asked for it, the provider vouches for exactly the account's address, or
 * it came by a mailed reset. Any other method stays unproven, because an attacker may have added it, and is removed as
 * soon as the owner acts ("Pre-hijacked accounts", USENIX Security 2022). All of this happens under the lock on the
 * user.
 */

/** A login method that is not proven. `addedAt` in milliseconds since 1970. */
export interface UnprovenMethod {
  /** `password`, or the name of the identity's provider. */
  method: string;
  addedAt: number;
}

export const PASSWORD = 'password';

const identitiesOf = (em: EntityManager, user: User) =>
  em.find(Identity, { userId: user.id }, { orderBy: { createdAt: 'asc' } });

/** A password is set when the account is made, or by a reset, which proves it. */
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
  return user.passwordProven || (await identitiesOf(em, user)).some(({ proven }) => proven);
}

export async function hasLoginMethod(em: EntityManager, user: User): Promise<boolean> {
  return user.hasPassword || (await identitiesOf(em, user)).length > 0;
}

interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: User;
}

/**
 * The owner of the inbox has acted: removes every unproven method, and if there was any, all sessions and mailed tokens
 * too, because it may have opened or requested them. The owner, who may have added the methods after all, is
 * informed by mail. Answers whether any was removed; call `outbox.wake` after the commit.
 */
export async function removeUnprovenMethods(
  { tokens, outbox }: Pick<Deps, 'tokens' | 'outbox'>,
  { em, tables, user }: Scope,
): Promise<boolean> {
  const identities = await identitiesOf(em, user);
  const unproven = identities.filter(({ proven }) => !proven);
  const removed = [...unprovenPassword(user), ...unproven.map(({ provider }) => ({ method: provider }))];
  if (removed.length === 0) return false;
  if (user.hasUnprovenPassword) user.removePassword();
  for (const identity of unproven) em.remove(identity);
  const left = identities.filter(({ proven }) => proven).map(({ provider }) => provider);
  user.keepProviderAmong(user.hasPassword ? ['email', ...left] : left);
  await endSessionsOf(tables, user);
  await tokens.revoke(tables, user.id, 'verify-email');
  await tokens.revoke(tables, user.id, 'reset-password');
  const detail = [...new Set(removed.map(({ method }) => method))].join(',').slice(0, 255);
  await outbox.enqueue(tables, { kind: 'login-methods-removed', email: user.email, userId: user.id, detail });
  return true;
}
