import { Identity, User } from '../../entities/index.ts';
import type { AllTables, EntityManager } from '../parts/database/contract.ts';
import type { ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';
import { hasLoginMethod, removeUnprovenMethods } from './login-methods.ts';
import { isName, isWebAddress, nameFromAddress } from './text-rules.ts';
import { type Account, accountOf, lockUser } from './users.ts';

/** Which user an identity belongs to: the four rules of decisions.md, "Identity provider". */

/** The outcome of a login through a provider. */
export type Admission =
  | { result: 'admitted'; account: Account }
  /** The user's account waits for its verification; a mail with a link is on its way. */
  | { result: 'unverified' }
  /** The address belongs to an account, and the provider does not vouch that the user owns it. */
  | { result: 'email-unverified' }
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
}

type RuleDeps = Pick<Deps, 'deleteUser' | 'outbox' | 'tokens'>;

/**
 * Rule 1: the identity is linked to `user`. An account that is still unverified follows the identity's address, or a
 * typing error at the provider would shut its user out for good; if the right address has an account already, the
 * identity belongs there.
 */
export async function admitLinked(deps: RuleDeps, arrival: Arrival, user: User): Promise<Admission> {
  const { em, tables, identity, email } = arrival;
  const { issuer, subject } = identity;
  const link = await em.findOneOrFail(Identity, { issuer, subject });
  if (email === user.email && identity.emailVerified) return admitOwner(deps, arrival, user, link);
  if (user.emailVerified) return admitted(user);
  if (email === undefined || email === user.email) return mailVerification(deps, arrival, user, link);

  // Two logins that exchange their addresses lock each other's user: the database ends one transaction, which is
  // retried.
  const other = await lockUser(em, { email });
  if (other) {
    return identity.emailVerified
      ? moveTo(deps, arrival, other, user, link)
      : mailVerification(deps, arrival, user, link);
  }
  user.changeEmail(email);
  await em.flush();
  // Links mailed to the former address must not work for this account.
  await deps.tokens.revoke(tables, user.id, 'verify-email');
  await deps.tokens.revoke(tables, user.id, 'reset-password');
  return identity.emailVerified ? admitOwner(deps, arrival, user, link) : mailVerification(deps, arrival, user, link);
}

/** Rules 2 and 3: the identity is new, and `user` has the address that the provider states. */
export async function admitByAddress(deps: RuleDeps, arrival: Arrival, user: User): Promise<Admission> {
  if (!arrival.identity.emailVerified) return { result: 'email-unverified' };
  return admitOwner(deps, arrival, user, await addLink(arrival, user));
}

/** Rule 4: neither the identity nor the address is known. */
export async function admitNew(deps: RuleDeps, arrival: Arrival, email: string): Promise<Admission> {
  const { em, identity, provider } = arrival;
  const user = User.admit({
    email,
    name: nameIn(identity, email),
    avatar: pictureIn(identity),
    provider,
    emailVerified: identity.emailVerified,
  });
  await em.insert(user);
  const link = await addLink(arrival, user);
  if (!user.emailVerified) return mailVerification(deps, arrival, user, link);
  link.prove();
  return admitted(user);
}

/** The link is managed from here on: later changes of it are written with the transaction. */
async function addLink({ em, identity, provider }: Arrival, user: User): Promise<Identity> {
  const { issuer, subject } = identity;
  const link = Identity.link(user.id, { issuer, subject, provider });
  await em.persist(link).flush();
  return link;
}

/** The provider does not vouch for the address: the mail must be confirmed, best in the browser that logs in. */
async function mailVerification(
  { outbox }: RuleDeps,
  { tables, browser }: Arrival,
  user: User,
  link: Identity,
): Promise<Admission> {
  link.browser = browserHash(browser);
  await outbox.enqueue(tables, { kind: 'verify-email', email: user.email });
  return { result: 'unverified' };
}

/**
 * The provider vouches for the account's own address, so the owner of the inbox logs in. The identity is proven, and
 * unproven login methods are removed; if any were, an account that was never verified is claimed for the owner.
 */
async function admitOwner(
  deps: RuleDeps,
  { em, tables, identity }: Arrival,
  user: User,
  link: Identity,
): Promise<Admission> {
  link.prove();
  await em.flush();
  const isShared = await removeUnprovenMethods(deps, { em, tables, user });
  if (!user.emailVerified) {
    if (isShared) user.claim(nameIn(identity, user.email));
    user.verifyEmail();
  }
  return admitted(user);
}

/** Moves the identity to `owner`. The account of the mistyped address is deleted, unless it has another login method. */
async function moveTo(deps: RuleDeps, arrival: Arrival, owner: User, former: User, link: Identity): Promise<Admission> {
  const { em, tables } = arrival;
  link.userId = owner.id;
  await em.flush();
  if (!(await hasLoginMethod(em, former))) await deps.deleteUser(em, tables, former);
  return admitOwner(deps, arrival, owner, link);
}

const admitted = (user: User): Admission => ({ result: 'admitted', account: accountOf(user) });

const nameIn = ({ name }: ProvidedIdentity, email: string): string => {
  const given = name?.trim() ?? '';
  return isName(given) ? given : nameFromAddress(email);
};

const pictureIn = ({ picture = '' }: ProvidedIdentity) => (isWebAddress(picture) ? picture : null);
