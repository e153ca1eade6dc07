import { Identity, Totp, User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { AllTables, EntityManager } from '../parts/database/contract.ts';
import type { ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';
import type { InvitedBy } from './invitation-rows.ts';
import { hasLoginMethod, removeUnprovenMethods } from './login-methods.ts';
import { isName, isWebAddress, nameFromAddress } from './text-rules.ts';
import { type Account, accountOf, lockUser } from './users.ts';

/** Which user an identity belongs to: the four rules of decisions.md, "Identity provider". */

/** The outcome of a login through a provider. */
export type Admission =
  | { result: 'admitted'; account: Account; identityId: string }
  /** The user's account waits for its verification; a mail with a link is on its way. */
  | { result: 'unverified' }
  /** The address belongs to an account, or did until lately, and the provider does not vouch that the user owns it. */
  | { result: 'email-unverified' }
  /** The account was deleted, and can be restored. */
  | { result: 'deleted' }
  /** `email`: that of the account. */
  | { result: 'blocked'; email: string }
  /** The address is that of an account with an authenticator app: its user links the identity in a session. */
  | { result: 'not-linked' }
  /** The service lets no account be made, or its address be changed, for this address. */
  | { result: 'registration-closed' }
  /** There is no account that could be restored. */
  | { result: 'no-account' }
  /** The identity cannot be stored; or it is unknown, and without a usable address no account can be made for it. */
  | { result: 'unusable' };

/** The provider's statement about a user, and the transaction in which to decide. */
export interface Arrival {
  em: EntityManager;
  tables: AllTables;
  identity: ProvidedIdentity;
  /** The name of the provider. */
  provider: string;
  /** The address that the provider states, if it is usable. */
  email: string | undefined;
  /** The id of the browser that logs in. */
  browser: string;
  /** Whether the user asks to have a deleted account back. */
  restores: boolean;
  caller: Caller;
}

type RuleDeps = Pick<
  Deps,
  | 'consents'
  | 'deleteUser'
  | 'emailChanges'
  | 'invitations'
  | 'outbox'
  | 'record'
  | 'recordUnmailed'
  | 'registration'
  | 'takesPictures'
  | 'tokens'
>;

/**
 * Rule 1: the identity is linked to `user`. An account that is still unverified follows the identity's address, or a
 * typing error at the provider would shut its user out for good; if the right address has an account already, the
 * identity belongs there.
 */
export async function admitLinked(deps: RuleDeps, arrival: Arrival, user: User): Promise<Admission> {
  if (user.isBlocked) return blocked(user);
  if (!isAdmissible(arrival, user)) return { result: 'deleted' };
  const { em, tables, identity, email } = arrival;
  const { issuer, subject } = identity;
  const link = await em.findOneOrFail(Identity, { issuer, subject });
  link.stateEmail(email);
  if (email === user.email && identity.emailVerified) return admitOwner(deps, arrival, user, link);
  if (user.emailVerified) return admitted(user, link);
  if (email === undefined || email === user.email) return mailVerification(deps, arrival, user, link);

  // Else every address could be had by way of one that is let in; and a refusal tells nothing of whose it is.
  const isLetIn = deps.registration.allowsChangeTo(email);
  if (!isLetIn && !identity.emailVerified) return { result: 'registration-closed' };

  // Two logins that exchange their addresses lock each other's user: the database ends one transaction, which is
  // retried.
  const other = await lockUser(em, { email });
  if (other?.isDeleted && !identity.emailVerified) return { result: 'email-unverified' };
  if (other?.isBlocked && identity.emailVerified) return blocked(other);
  if (other && identity.emailVerified && !isAdmissible(arrival, other)) return { result: 'deleted' };
  if (other) {
    return identity.emailVerified
      ? moveTo(deps, arrival, other, user, link)
      : mailVerification(deps, arrival, user, link);
  }
  if (await deps.emailChanges.isReserved(tables, email, user.id)) return { result: 'email-unverified' };
  if (!isLetIn) return { result: 'registration-closed' };
  user.changeEmail(email);
  await em.flush();
  // Links mailed to the former address must not work for this account.
  await deps.tokens.revokeAll(tables, user.id);
  return identity.emailVerified ? admitOwner(deps, arrival, user, link) : mailVerification(deps, arrival, user, link);
}

/**
 * Whoever reads the inbox can have an identity at some provider that vouches for the address: where a second factor is asked
 * for, the address alone links none, also at a provider that is trusted to have asked for one.
 */
const hasApp = async (em: EntityManager, { id }: User): Promise<boolean> => (await em.count(Totp, { userId: id })) > 0;

/** A deleted account is restored when the login is complete. */
const isAdmissible = ({ restores }: Arrival, user: User): boolean => !user.isDeleted || restores;

/** Rules 2 and 3: the identity is new, and `user` has the address that the provider states. */
export async function admitByAddress(deps: RuleDeps, arrival: Arrival, user: User): Promise<Admission> {
  const { tables, identity, provider, caller } = arrival;
  if (!identity.emailVerified) return { result: 'email-unverified' };
  if (user.isBlocked) return blocked(user);
  if (!isAdmissible(arrival, user)) return { result: 'deleted' };
  if (await hasApp(arrival.em, user)) return { result: 'not-linked' };
  const link = await addLink(arrival, user);
  await deps.record(tables, user, { kind: 'identity-linked', details: { provider } }, caller);
  return admitOwner(deps, arrival, user, link);
}

/**
 * Whether the provider's statement alone lets an unknown identity in. Where it does not, the answer must not depend on whether
 * there is an account with the address, which anybody can state at a provider that vouches for none.
 */
export const mayBecomeUser = (
  { registration }: Pick<RuleDeps, 'registration'>,
  { identity, email }: Arrival,
): boolean => identity.emailVerified || (email !== undefined && registration.admits(email));

/** Rule 4: neither the identity nor the address is known. */
export async function admitNew(deps: RuleDeps, arrival: Arrival, email: string): Promise<Admission> {
  const { em, tables, identity, provider, caller } = arrival;
  const user = User.admit({
    email,
    name: nameIn(identity, email),
    avatar: deps.takesPictures ? pictureIn(identity) : null,
    provider,
    emailVerified: identity.emailVerified,
    browserLanguage: caller.language(),
  });
  if (await deps.emailChanges.isReserved(tables, email, user.id)) return { result: 'email-unverified' };
  const entry = await entryFor(deps, tables, email);
  if (!entry) return { result: 'registration-closed' };
  await em.insert(user);
  // The log-in page says so beside its buttons, and other front ends have to.
  await deps.consents.record(tables, user.id);
  await deps.record(tables, user, { kind: 'registered', details: { method: provider, ...entry } }, caller);
  const link = await addLink(arrival, user);
  // The account was made with it: no news to its user.
  await deps.recordUnmailed(tables, user.id, { kind: 'identity-linked', details: { provider } }, caller);
  if (!user.emailVerified) return mailVerification(deps, arrival, user, link);
  link.prove();
  return admitted(user, link);
}

/**
 * How a new user comes in: freely, or by an invitation, which is used up. Undefined for one who is not let in. The caller has
 * made sure that the provider vouches for an address that needs an invitation.
 */
async function entryFor(
  { invitations, registration }: RuleDeps,
  tables: AllTables,
  email: string,
): Promise<{ invitedBy?: InvitedBy } | undefined> {
  if (registration.admits(email)) return {};
  const invitation = registration.takesInvitations ? await invitations.findFor(tables, email) : undefined;
  const invitedBy = invitation && (await invitations.use(tables, invitation));
  return invitedBy && { invitedBy };
}

/**
 * Links an identity that is linked to nobody. The link is managed from here on: later changes of it are written with the
 * transaction.
 */
export async function addLink(
  { em, identity, provider, email }: Pick<Arrival, 'em' | 'identity' | 'provider' | 'email'>,
  user: User,
): Promise<Identity> {
  const { issuer, subject } = identity;
  const link = Identity.link(user.id, { issuer, subject, provider, email });
  await em.persist(link).flush();
  return link;
}

/** The provider does not vouch for the address: the mail must be confirmed, best in the browser that logs in. */
async function mailVerification(
  { outbox }: RuleDeps,
  { tables, browser, caller }: Arrival,
  user: User,
  link: Identity,
): Promise<Admission> {
  link.browser = browserHash(browser);
  await outbox.enqueue(tables, { kind: 'verify-email', email: user.email }, caller);
  return { result: 'unverified' };
}

/**
 * The provider vouches for the account's own address, so the owner of the inbox logs in. The identity is proven, and
 * unproven login methods are removed; if any were, an account that was never verified is claimed for the owner.
 */
async function admitOwner(
  deps: RuleDeps,
  { em, tables, identity, caller }: Arrival,
  user: User,
  link: Identity,
): Promise<Admission> {
  link.prove();
  await em.flush();
  const isShared = await removeUnprovenMethods(deps, { em, tables, user, caller });
  // The owner accepts them as a new user does who comes through a provider.
  if (isShared) await deps.consents.record(tables, user.id);
  if (!user.emailVerified) {
    if (isShared) user.claim(nameIn(identity, user.email));
    user.verifyEmail();
    await deps.record(tables, user, { kind: 'verified' }, caller);
  }
  return admitted(user, link);
}

/** Moves the identity to `owner`. The account of the mistyped address is deleted, unless it has another login method. */
async function moveTo(deps: RuleDeps, arrival: Arrival, owner: User, former: User, link: Identity): Promise<Admission> {
  const { em, tables, provider, caller } = arrival;
  if (await hasApp(em, owner)) return { result: 'not-linked' };
  link.userId = owner.id;
  await em.flush();
  // Its address was mistyped: a mail there would reach a stranger.
  await deps.recordUnmailed(tables, former.id, { kind: 'identity-unlinked', details: { provider } }, caller);
  await deps.record(tables, owner, { kind: 'identity-linked', details: { provider } }, caller);
  if (!(await hasLoginMethod(em, former))) await deps.deleteUser(em, tables, former);
  return admitOwner(deps, arrival, owner, link);
}

const blocked = ({ email }: User): Admission => ({ result: 'blocked', email });

const admitted = (user: User, { id }: Identity): Admission => ({
  result: 'admitted',
  account: accountOf(user),
  identityId: id,
});

const nameIn = ({ name }: ProvidedIdentity, email: string): string => {
  const given = name?.trim() ?? '';
  return isName(given) ? given : nameFromAddress(email);
};

const pictureIn = ({ picture = '' }: ProvidedIdentity) => (isWebAddress(picture) ? picture : null);
