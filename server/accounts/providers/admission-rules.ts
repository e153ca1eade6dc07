import { Identity, Totp, User } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import type { Activity } from '../../activity/index.ts';
import type { AllTables, EntityManager } from '../../parts/database/contract.ts';
import type { ProvidedIdentity } from '../../parts/identity-provider/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import { hasLoginMethod, removeUnprovenMethods } from '../credentials/index.ts';
import {
  type EmailChangeRows,
  entryFor,
  type InvitationRows,
  type OneTimeTokens,
  type Outbox,
  type RecordEvent,
} from '../mail/index.ts';
import {
  type Account,
  accountOf,
  type Consents,
  claimUser,
  type DeleteUser,
  isName,
  isWebAddress,
  type LockedId,
  type LockedUser,
  lockUser,
  nameFromAddress,
  type RegistrationPolicy,
  storeNameWords,
} from '../users/index.ts';
import type { Flow } from './flows.ts';
import type { Invited } from './outcomes.ts';

/** Which user an identity belongs to: the four rules of design/providers.md. */

/** The outcome of a login through a provider. */
export type Admission =
  /** `isNew`: the account was created just now. */
  | ({ result: 'admitted'; account: Account; identityId: string; isNew?: true } & Invited)
  /** The account is unverified. A mail with a link is queued. */
  | { result: 'unverified' }
  /** The address belongs to an account or is reserved, and the provider does not vouch for it. */
  | { result: 'email-unverified' }
  /** The account was deleted and can be restored. */
  | { result: 'deleted' }
  /** `email`: the account's address. */
  | { result: 'blocked'; email: string }
  /** The account has an authenticator app. Its user can link the identity in a session. */
  | { result: 'not-linked' }
  /** The registration policy allows no account with this address, or no change to it. */
  | { result: 'registration-closed' }
  /** No account to restore. */
  | { result: 'no-account' }
  /**
   * The identity cannot be stored, its user has too many, or it is unknown and has no usable address for an account.
   */
  | { result: 'unusable' };

/** The provider's statement about a user, and the transaction of the decision. */
export interface ProviderLogin {
  em: EntityManager;
  tables: AllTables;
  identity: ProvidedIdentity;
  provider: ProviderName;
  /** The address stated by the provider, if usable. */
  email: string | undefined;
  /** The asker of the flow. */
  asker: Flow['asker'];
  /** Whether the user asks to restore a deleted account. */
  restores: boolean;
  caller: Caller;
  /** Where the page of a mailed link leads. */
  returnTo: Flow['returnTo'];
}

export interface AdmissionNeeds {
  consents: Pick<Consents, 'record' | 'removeSince'>;
  deleteUser: DeleteUser;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  /** Inserts an event without a mail. */
  recordUnmailed: Activity['record'];
  registration: RegistrationPolicy;
  /** Whether a provider's picture may be the avatar of a new account. */
  takesPictures: boolean;
  tokens: OneTimeTokens;
}

/**
 * Rule 1: the identity is linked to `user`. An unverified account follows the identity's address, so that a typing
 * error at the provider does not lock the user out. If that address has an account, the identity moves there.
 */
export async function admitLinked(needs: AdmissionNeeds, login: ProviderLogin, user: LockedUser): Promise<Admission> {
  if (user.isBlocked) return blocked(user);
  if (!isAdmissible(login, user)) return { result: 'deleted' };
  const { em, tables, identity, email, caller } = login;
  const { issuer, subject } = identity;
  const link = await em.findOneOrFail(Identity, { issuer, subject });
  link.stateEmail(email);
  if (email === user.email && identity.emailVerified) return admitOwner(needs, login, user, link);
  if (user.emailVerified) return admitted(user, link);
  if (email === undefined || email === user.email) return mailVerification(needs, login, user, link);

  // Otherwise an allowed address could be changed to any other. The refusal does not reveal who has the address.
  const isLetIn = needs.registration.allowsChangeTo(email);
  if (!isLetIn && !identity.emailVerified) return { result: 'registration-closed' };

  // Two logins that exchange their addresses lock each other's user: the database ends one transaction, which is
  // retried.
  const other = await lockUser(em, { email });
  if (other?.isDeleted && !identity.emailVerified) return { result: 'email-unverified' };
  if (other?.isBlocked && identity.emailVerified) return blocked(other);
  if (other && identity.emailVerified && !isAdmissible(login, other)) return { result: 'deleted' };
  if (other) {
    return identity.emailVerified
      ? moveTo(needs, login, other, user, link)
      : mailVerification(needs, login, user, link);
  }
  if (await needs.emailChanges.isReserved(tables, email, user.id)) return { result: 'email-unverified' };
  if (!isLetIn) return { result: 'registration-closed' };
  const from = user.email;
  user.changeEmail(email);
  await em.flush();
  // Invalidates links mailed to the former address.
  await needs.tokens.revokeAll(tables, user);
  await needs.record(tables, user, { kind: 'email-changed', details: { from, to: email } }, caller);
  return identity.emailVerified ? admitOwner(needs, login, user, link) : mailVerification(needs, login, user, link);
}

/**
 * A reader of the inbox may get an identity at some provider that vouches for the address. So with a second factor the
 * address alone links no identity, even if the provider is trusted to require one.
 */
const hasApp = async (em: EntityManager, { id }: User): Promise<boolean> => (await em.count(Totp, { userId: id })) > 0;

/** Maximum identities per user. Changes of an account read all of them. */
const MAX_IDENTITIES = 50;

/** Whether the user may have another identity. */
export const hasRoomForIdentity = async (em: EntityManager, { id }: LockedId): Promise<boolean> =>
  (await em.count(Identity, { userId: id })) < MAX_IDENTITIES;

/** A deleted account is restored when the login is complete. */
const isAdmissible = ({ restores }: ProviderLogin, user: User): boolean => !user.isDeleted || restores;

/** Rules 2 and 3: the identity is new, and `user` has the stated address. */
export async function admitByAddress(
  needs: AdmissionNeeds,
  login: ProviderLogin,
  user: LockedUser,
): Promise<Admission> {
  const { tables, identity, provider, caller } = login;
  if (!identity.emailVerified) return { result: 'email-unverified' };
  if (user.isBlocked) return blocked(user);
  if (!isAdmissible(login, user)) return { result: 'deleted' };
  if (await hasApp(login.em, user)) return { result: 'not-linked' };
  if (!(await hasRoomForIdentity(login.em, user))) return { result: 'unusable' };
  const link = await addLink(login, user);
  await needs.record(tables, user, { kind: 'identity-linked', details: { provider } }, caller);
  return admitOwner(needs, login, user, link);
}

/**
 * Whether the provider's statement alone admits an unknown identity. If not, the response must not depend on whether
 * the address has an account: at a provider that vouches for none, anybody can state any address.
 */
export const mayBecomeUser = (
  { registration }: Pick<AdmissionNeeds, 'registration'>,
  { identity, email }: ProviderLogin,
): boolean => identity.emailVerified || (email !== undefined && registration.admits(email));

/** Rule 4: neither the identity nor the address is known. */
export async function admitNew(needs: AdmissionNeeds, login: ProviderLogin, email: string): Promise<Admission> {
  const { em, tables, identity, provider, caller } = login;
  const user = User.admit({
    email,
    name: nameIn(identity, email),
    avatar: needs.takesPictures ? pictureIn(identity) : null,
    provider,
    emailVerified: identity.emailVerified,
    browserLanguage: caller.language(),
  });
  if (await needs.emailChanges.isReserved(tables, email, user.id)) return { result: 'email-unverified' };
  const entry = await entryFor(needs, tables, user);
  if (!entry) return { result: 'registration-closed' };
  const { returnTo: invitedTo, ...invited } = entry;
  await em.insert(user);
  await storeNameWords(tables, [user]);
  await recordConsent(needs, login, user);
  await needs.record(tables, user, { kind: 'registered', details: { method: provider, ...invited } }, caller);
  const link = await addLink(login, user);
  // No mail: the user has just created the account with it.
  await needs.recordUnmailed(tables, user.id, { kind: 'identity-linked', details: { provider } }, caller);
  if (!user.emailVerified) return mailVerification(needs, login, user, link);
  link.prove();
  return { ...admitted(user, link), isNew: true, invitedTo };
}

/** Links an unlinked identity. The link is managed from here on: the transaction also writes later changes of it. */
export async function addLink(
  { em, identity, provider, email }: Pick<ProviderLogin, 'em' | 'identity' | 'provider' | 'email'>,
  user: User,
): Promise<Identity> {
  const { issuer, subject } = identity;
  const link = Identity.link(user.id, { issuer, subject, provider, email });
  await em.persist(link).flush();
  return link;
}

/**
 * The login page states that logging in there accepts the terms, as other front ends must. A user sent to the provider
 * by another site has not seen it: the dashboard asks.
 */
async function recordConsent(
  { consents }: AdmissionNeeds,
  { tables, asker }: Pick<ProviderLogin, 'tables' | 'asker'>,
  user: User,
): Promise<void> {
  if (asker !== undefined) await consents.record(tables, user.id);
}

/**
 * The provider does not vouch for the address, so the mail must be confirmed, ideally in the browser that requested the
 * login.
 */
async function mailVerification(
  { outbox }: AdmissionNeeds,
  { tables, asker, caller, returnTo }: ProviderLogin,
  user: User,
  link: Identity,
): Promise<Admission> {
  link.browser = asker ?? null;
  await outbox.enqueue(tables, { kind: 'verify-email', email: user.email }, { ...caller, returnTo });
  return { result: 'unverified' };
}

/**
 * The provider vouches for the account's address, so the inbox owner logs in: the identity is proven and unproven
 * methods are removed. If there were any, an unverified account now belongs to the owner.
 */
async function admitOwner(
  needs: AdmissionNeeds,
  login: ProviderLogin,
  user: LockedUser,
  link: Identity,
): Promise<Admission> {
  const { em, tables, identity, caller } = login;
  link.prove();
  await em.flush();
  const isShared = await removeUnprovenMethods(needs, { em, tables, user, caller });
  // The owner accepts the terms as a new user of a provider does.
  if (isShared) await recordConsent(needs, login, user);
  if (!user.emailVerified) {
    if (isShared) await claimUser(needs, { tables, user, name: nameIn(identity, user.email), caller });
    user.verifyEmail();
    await needs.record(tables, user, { kind: 'verified' }, caller);
  }
  return admitted(user, link);
}

/** Moves the identity to `owner`. Deletes the account of the mistyped address, unless it has another login method. */
async function moveTo(
  needs: AdmissionNeeds,
  login: ProviderLogin,
  owner: LockedUser,
  former: LockedUser,
  link: Identity,
): Promise<Admission> {
  const { em, tables, provider, caller } = login;
  if (await hasApp(em, owner)) return { result: 'not-linked' };
  if (!(await hasRoomForIdentity(em, owner))) return { result: 'unusable' };
  link.userId = owner.id;
  await em.flush();
  // The address was mistyped: a mail would reach a stranger.
  await needs.recordUnmailed(tables, former.id, { kind: 'identity-unlinked', details: { provider } }, caller);
  await needs.record(tables, owner, { kind: 'identity-linked', details: { provider } }, caller);
  if (!(await hasLoginMethod(em, former))) await needs.deleteUser(em, tables, former);
  return admitOwner(needs, login, owner, link);
}

const blocked = ({ email }: User): Admission => ({ result: 'blocked', email });

const admitted = (user: User, { id }: Identity) => ({
  result: 'admitted' as const,
  account: accountOf(user),
  identityId: id,
});

const nameIn = ({ name }: ProvidedIdentity, email: string): string => {
  const trimmed = name?.trim() ?? '';
  return isName(trimmed) ? trimmed : nameFromAddress(email);
};

const pictureIn = ({ picture = '' }: ProvidedIdentity) => (isWebAddress(picture) ? picture : null);
