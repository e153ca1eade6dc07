import type { Identity } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { columnsOf } from '../parts/database/contract.ts';
import type { Deps } from './deps.ts';
import type { FlowOutcome, ReturnedIdentity } from './flow-outcomes.ts';
import { addressIn, decide, isStorableIdentity, linkedTo } from './identity-keys.ts';
import { addLink } from './identity-rules.ts';
import { hasOnlyProvenMethods, hasWayIn, identitiesOf, keepProviderOf } from './login-methods.ts';
import type { Session } from './sessions.ts';
import { deleteSessionsThrough, isSessionOpen, lockOwner } from './sessions-of-user.ts';
import { lockUser } from './users.ts';

/** The most identities that a user is shown. */
const MOST_LISTED = 100;

/** What users see of an identity. `createdAt` in milliseconds since 1970. */
const listedFields = ['id', 'provider', 'email', 'createdAt'] as const;
export type ListedIdentity = Pick<Identity, (typeof listedFields)[number]>;

/** How a user can log in. */
interface LoginMethods {
  /** The oldest first. */
  identities: ListedIdentity[];
  hasPassword: boolean;
}

/** Users link further identities to their account and unlink them. `providers` are the names of those that there are. */
export const createIdentityLinks = (deps: Deps, { providers }: { providers: readonly string[] }) => {
  const { database, outbox, record } = deps;

  const linkOnce = (
    { identity, provider, request }: ReturnedIdentity,
    { userId, sessionId, epoch }: { userId: string; sessionId: string; epoch: number },
  ): Promise<FlowOutcome | undefined> =>
    database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id: userId });
      if (user?.sessionEpoch !== epoch || !(await isSessionOpen(tables, { userId, sessionId }))) {
        return { result: 'session-ended' };
      }
      const linkedId = await linkedTo(tables, identity);
      if (linkedId !== undefined) return { result: linkedId === userId ? 'already-linked' : 'identity-taken' };
      const email = addressIn(identity);
      // The user of this session is the owner of the inbox where the provider vouches for the account's own address, or
      // where only the owner has a way to open a session. Otherwise an attacker may be adding a second foothold.
      const isOwners = (email === user.email && identity.emailVerified) || (await hasOnlyProvenMethods(em, user));
      const link = await addLink({ em, identity, provider, email }, user);
      if (isOwners) link.prove();
      await record(tables, user, { kind: 'identity-linked', details: { provider } }, request);
      return { result: 'linked' };
    }, userId);

  return {
    list: (userId: string): Promise<LoginMethods> =>
      database.query(async (tables) => {
        const identities = tables
          .selectFrom('identities')
          .select(columnsOf(listedFields))
          .where('user_id', '=', userId)
          .orderBy('created_at')
          .orderBy('id')
          .limit(MOST_LISTED);
        const password = tables
          .selectFrom('users')
          .select('id')
          .where('id', '=', userId)
          .where('password_hash', 'is not', null);
        return {
          identities: await identities.execute(),
          hasPassword: (await password.executeTakeFirst()) !== undefined,
        };
      }),

    /** Links the identity to the user of the session in which the flow began, who may have it already. */
    async link(returned: ReturnedIdentity): Promise<FlowOutcome> {
      const { owner } = returned.flow;
      if (!owner) throw new ServiceError('INVALID_STATE');
      if (!isStorableIdentity(returned.identity)) return { result: 'failed' };
      const outcome = await decide(() => linkOnce(returned, owner));
      outbox.wake();
      return outcome;
    },

    /**
     * Unlinks an identity of the session's user, and ends the sessions that were opened through its provider, but for this
     * one. Rejects with NOT_FOUND, and with LAST_LOGIN_METHOD if no user could log in to the account any more.
     */
    async unlink(session: Session, id: string, caller: Caller): Promise<void> {
      const { id: sessionId, user: owner } = session;
      const userId = owner.id;
      await database.transaction(async (em, tables) => {
        const user = await lockOwner(em, tables, session);
        const identities = await identitiesOf(em, user);
        const unlinked = identities.find((identity) => identity.id === id);
        if (!unlinked) throw new ServiceError('NOT_FOUND', { message: 'You have no such linked login' });
        // Before its sessions end: a login through it that is being stored holds its row, and has a session after that.
        await em.remove(unlinked).flush();
        if (!(await hasWayIn(em, user, providers))) throw new ServiceError('LAST_LOGIN_METHOD');
        keepProviderOf(
          user,
          identities.filter((identity) => identity !== unlinked),
        );
        const { provider } = unlinked;
        await deleteSessionsThrough(tables, { userId, method: provider, but: sessionId });
        await record(tables, user, { kind: 'identity-unlinked', details: { provider } }, caller);
      }, userId);
      outbox.wake();
    },
  };
};

export type IdentityLinks = ReturnType<typeof createIdentityLinks>;
