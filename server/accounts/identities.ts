import type { Kysely } from 'kysely';
import { Identity, User } from '../../entities/index.ts';
import { unavailable } from '../errors.ts';
import { type EntityManager, isDuplicate } from '../parts/database/index.ts';
import type { Tables } from '../parts/database/tables.ts';
import type { ProvidedIdentity } from '../parts/identity-provider/index.ts';
import { claimAccount } from './claim.ts';
import type { Deps } from './index.ts';
import { isMailAddress, isName, isWebAddress } from './text-rules.ts';
import { type Account, accountOf, lockUser } from './users.ts';

/** How often somebody else may be first before a login gives up. */
const ATTEMPTS = 5;

/** What becomes of somebody whom a provider sends. */
export type Admission =
  | { result: 'admitted'; account: Account }
  /** His account waits for its verification; a mail with a link is on its way. */
  | { result: 'unverified' }
  /** The address belongs to an account, and the provider does not vouch that it is his. */
  | { result: 'email-unverified' }
  /** The identity cannot be kept; or nobody is known by it, and without a usable address nobody can be. */
  | { result: 'unusable' };

/** An identity that can be kept: neither a trailing space nor a letter that the column lacks makes two subjects one. */
const isKey = (text: string) => /^[!-~](?:[ -~]{0,253}[!-~])?$/.test(text);

const addressIn = ({ email }: ProvidedIdentity) =>
  email !== undefined && isMailAddress(email) ? email.toLowerCase() : undefined;

const nameIn = ({ name }: ProvidedIdentity, email: string): string => {
  const localPart = email.slice(0, email.indexOf('@'));
  return [name?.trim() ?? '', localPart].find(isName) ?? email.slice(0, 100);
};

const pictureIn = ({ picture = '' }: ProvidedIdentity) => (isWebAddress(picture) ? picture : null);

/** Which user somebody from an identity provider is: the four rules of decisions.md, "Identity provider". */
export const createIdentities = (deps: Deps, provider: string) => {
  const { database, tokens, mailToken, outbox } = deps;

  const linkedTo = async (tables: Kysely<Tables>, { issuer, subject }: ProvidedIdentity) => {
    const identity = await tables
      .selectFrom('identities')
      .select('user_id')
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst();
    return identity?.user_id;
  };

  const isTaken = async (tables: Kysely<Tables>, email: string) =>
    (await tables.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst()) !== undefined;

  const mailVerification = async (tables: Kysely<Tables>, user: User): Promise<Admission> => {
    if (await outbox.hasRoomFor(tables, user.id, 'verify-email')) await mailToken(tables, user.id, 'verify-email');
    return { result: 'unverified' };
  };

  /**
   * Rule 1. Nobody but this identity has ever been let near an account that is still unverified: it follows the identity's
   * address, or a typing error at the provider would shut its owner out for good.
   */
  const welcomeBack = async (em: EntityManager, tables: Kysely<Tables>, user: User, identity: ProvidedIdentity) => {
    if (user.emailVerified) return admitted(user);
    const email = addressIn(identity);
    if (email !== undefined && email !== user.email && !(await isTaken(tables, email))) {
      user.changeEmail(email);
      await em.flush();
      // What was mailed to the former address must open nothing here.
      await tokens.revoke(tables, user.id, 'verify-email');
      await tokens.revoke(tables, user.id, 'reset-password');
    }
    if (email !== user.email || !identity.emailVerified) return mailVerification(tables, user);
    user.verifyEmail();
    return admitted(user);
  };

  /** Rule 2: the provider vouches for the address. */
  const link = async (em: EntityManager, tables: Kysely<Tables>, user: User, identity: ProvidedIdentity) => {
    if (!user.emailVerified) {
      await claimAccount(tables, tokens, user, provider);
      await tokens.revoke(tables, user.id, 'reset-password');
      user.changeProfile({ name: nameIn(identity, user.email) });
    }
    await em.insert(Identity.link(user.id, identity));
    return admitted(user);
  };

  /** Rule 4. */
  const create = async (em: EntityManager, tables: Kysely<Tables>, email: string, identity: ProvidedIdentity) => {
    const user = User.admit({
      email,
      name: nameIn(identity, email),
      avatar: pictureIn(identity),
      provider,
      emailVerified: identity.emailVerified,
    });
    await em.insert(user);
    await em.insert(Identity.link(user.id, identity));
    return user.emailVerified ? admitted(user) : mailVerification(tables, user);
  };

  /**
   * The user is locked before anything is decided. Undefined if the look before the lock and the one after it differ: another
   * login has linked this identity meanwhile, or the account's owner has cut it off.
   */
  const admitOnce = (identity: ProvidedIdentity): Promise<Admission | undefined> =>
    database.transaction(async (em, tables) => {
      const linkedId = await linkedTo(tables, identity);
      if (linkedId !== undefined) {
        const user = await lockUser(em, { id: linkedId });
        const isStillLinked = (await linkedTo(tables, identity)) === user?.id;
        return user && isStillLinked ? welcomeBack(em, tables, user, identity) : undefined;
      }
      const email = addressIn(identity);
      if (email === undefined) return { result: 'unusable' };
      const user = await lockUser(em, { email });
      if ((await linkedTo(tables, identity)) !== undefined) return undefined;
      if (!user) return create(em, tables, email, identity);
      return identity.emailVerified ? link(em, tables, user, identity) : { result: 'email-unverified' };
    }, addressIn(identity) ?? identity.subject);

  return {
    /**
     * Finds, claims or creates the user, in one transaction. Of two that come at once the lock or a unique key decides who
     * was first; the other looks again and finds what the first has made.
     */
    async admit(identity: ProvidedIdentity): Promise<Admission> {
      if (!isKey(identity.issuer) || !isKey(identity.subject)) return { result: 'unusable' };
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const admission = await admitOnce(identity).catch(undefinedIfDuplicate);
        if (admission?.result === 'unverified') outbox.wake();
        if (admission) return admission;
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
