import { Identity, User } from '../../entities/index.ts';
import { unavailable } from '../errors.ts';
import { type AllTables, type EntityManager, isDuplicate } from '../parts/database/contract.ts';
import type { ProvidedIdentity } from '../parts/identity-provider/contract.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';
import { hasLoginMethod, removeUnprovenMethods } from './login-methods.ts';
import { isMailAddress, isName, isWebAddress, nameFromAddress, normalizeEmail } from './text-rules.ts';
import { type Account, accountOf, lockUser } from './users.ts';

/** How often a concurrent login may be first before this one gives up. */
const ATTEMPTS = 5;

/** The outcome of a login through a provider. */
export type Admission =
  | { result: 'admitted'; account: Account }
  /** The user's account waits for its verification; a mail with a link is on its way. */
  | { result: 'unverified' }
  /** The address belongs to an account, and the provider does not vouch that the user owns it. */
  | { result: 'email-unverified' }
  /** The identity cannot be stored; or it is unknown, and without a usable address no account can be made for it. */
  | { result: 'unusable' };

/**
 * Whether an issuer or subject can be stored: no two become equal by a trailing space or a letter that the column
 * lacks.
 */
const isKey = (text: string) => /^[!-~](?:[ -~]{0,253}[!-~])?$/.test(text);

const addressIn = ({ email }: ProvidedIdentity) =>
  email !== undefined && isMailAddress(email) ? normalizeEmail(email) : undefined;

const nameIn = ({ name }: ProvidedIdentity, email: string): string => {
  const given = name?.trim() ?? '';
  return isName(given) ? given : nameFromAddress(email);
};

const pictureIn = ({ picture = '' }: ProvidedIdentity) => (isWebAddress(picture) ? picture : null);

/** The provider's statement about a user, and the transaction in which to decide. */
interface Arrival {
  em: EntityManager;
  tables: AllTables;
  identity: ProvidedIdentity;
  /** The address that the provider states, if it is usable. */
  email: string | undefined;
  /** The id of the browser that logs in. */
  browser: string;
}

/** Decides which user an identity belongs to: the four rules of decisions.md, "Identity provider". */
export const createIdentities = (deps: Deps, provider: string) => {
  const { database, deleteUser, tokens, outbox } = deps;

  const linkedTo = async (tables: AllTables, { issuer, subject }: ProvidedIdentity) => {
    const identity = await tables
      .selectFrom('identities')
      .select('user_id')
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst();
    return identity?.user_id;
  };

  /** The provider does not vouch for the address: the mail must be confirmed, best in the browser that logs in. */
  const mailVerification = async ({ tables, browser }: Arrival, user: User, link: Identity): Promise<Admission> => {
    link.browser = browserHash(browser);
    await outbox.enqueue(tables, { kind: 'verify-email', email: user.email });
    return { result: 'unverified' };
  };

  /**
   * The provider vouches for the account's own address, so the owner of the inbox logs in. The identity is proven, and
   * unproven login methods are removed; if any were, an account that was never verified is claimed for the owner.
   */
  const admitOwner = async ({ em, tables, identity }: Arrival, user: User, link: Identity): Promise<Admission> => {
    link.prove();
    await em.flush();
    const isShared = await removeUnprovenMethods(deps, { em, tables, user });
    if (!user.emailVerified) {
      if (isShared) user.claim(nameIn(identity, user.email));
      user.verifyEmail();
    }
    return admitted(user);
  };

  /**
   * Rule 1. An account that is still unverified follows the identity's address, or a typing error at the provider would shut
   * its user out for good; if the right address has an account already, the identity belongs there.
   */
  const welcomeBack = async (arrival: Arrival, user: User): Promise<Admission> => {
    const { em, tables, identity, email } = arrival;
    const { issuer, subject } = identity;
    const link = await em.findOneOrFail(Identity, { issuer, subject });
    if (email === user.email && identity.emailVerified) return admitOwner(arrival, user, link);
    if (user.emailVerified) return admitted(user);
    if (email === undefined || email === user.email) return mailVerification(arrival, user, link);

    // Two logins that exchange their addresses lock each other's user: the database ends one transaction, which is
    // retried.
    const other = await lockUser(em, { email });
    if (other)
      return identity.emailVerified ? moveTo(arrival, other, user, link) : mailVerification(arrival, user, link);
    user.changeEmail(email);
    await em.flush();
    // Links mailed to the former address must not work for this account.
    await tokens.revoke(tables, user.id, 'verify-email');
    await tokens.revoke(tables, user.id, 'reset-password');
    return identity.emailVerified ? admitOwner(arrival, user, link) : mailVerification(arrival, user, link);
  };

  /**
   * Moves the identity to `owner`. The account of the mistyped address is deleted, unless it has another login method.
   */
  const moveTo = async (arrival: Arrival, owner: User, former: User, link: Identity): Promise<Admission> => {
    const { em, tables } = arrival;
    link.userId = owner.id;
    await em.flush();
    if (!(await hasLoginMethod(em, former))) await deleteUser(em, tables, former);
    return admitOwner(arrival, owner, link);
  };

  /** Rule 4. */
  const create = async (arrival: Arrival, email: string): Promise<Admission> => {
    const { em, identity } = arrival;
    const user = User.admit({
      email,
      name: nameIn(identity, email),
      avatar: pictureIn(identity),
      provider,
      emailVerified: identity.emailVerified,
    });
    await em.insert(user);
    const link = await addLink(arrival, user);
    if (!user.emailVerified) return mailVerification(arrival, user, link);
    link.prove();
    return admitted(user);
  };

  /** The link is managed from here on: later changes of it are written with the transaction. */
  const addLink = async ({ em, identity: { issuer, subject } }: Arrival, user: User): Promise<Identity> => {
    const link = Identity.link(user.id, { issuer, subject, provider });
    await em.persist(link).flush();
    return link;
  };

  /**
   * Locks the user before anything is decided. Undefined if the identity's link differs before and after the lock:
   * another login has linked this identity meanwhile, or the account's owner has removed it.
   */
  const admitOnce = (identity: ProvidedIdentity, browser: string): Promise<Admission | undefined> =>
    database.transaction(async (em, tables) => {
      const email = addressIn(identity);
      const arrival: Arrival = { em, tables, identity, email, browser };
      const linkedId = await linkedTo(tables, identity);
      if (linkedId !== undefined) {
        const user = await lockUser(em, { id: linkedId });
        const isStillLinked = (await linkedTo(tables, identity)) === user?.id;
        return user && isStillLinked ? welcomeBack(arrival, user) : undefined;
      }
      if (email === undefined) return { result: 'unusable' };
      const user = await lockUser(em, { email });
      if ((await linkedTo(tables, identity)) !== undefined) return undefined;
      if (!user) return create(arrival, email);
      // Rule 3.
      if (!identity.emailVerified) return { result: 'email-unverified' };
      // Rule 2.
      return admitOwner(arrival, user, await addLink(arrival, user));
    }, addressIn(identity) ?? identity.subject);

  return {
    /**
     * Finds, claims or creates the user, in one transaction. Of two concurrent logins the lock or a unique key decides
     * which is first; the other tries again and finds what the first has made.
     */
    async admit(identity: ProvidedIdentity, browser: string): Promise<Admission> {
      if (!isKey(identity.issuer) || !isKey(identity.subject)) return { result: 'unusable' };
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const admission = await admitOnce(identity, browser).catch(undefinedIfDuplicate);
        if (!admission) continue;
        outbox.wake();
        return admission;
      }
      throw unavailable(new Error('others were first each time'));
    },
  };
};

const undefinedIfDuplicate = (error: unknown): undefined => {
  if (!isDuplicate(error)) throw error;
};

export type Identities = ReturnType<typeof createIdentities>;

const admitted = (user: User): Admission => ({ result: 'admitted', account: accountOf(user) });
