import type { Identity } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { columnsOf, type Database, retryOnDuplicate } from '../../parts/database/contract.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import { canLogIn, hasOnlyProvenMethods, identitiesOf, keepProviderOf } from '../credentials/index.ts';
import type { Outbox, RecordEvent } from '../mail/index.ts';
import { deleteSessionsThrough, isSessionOpen, lockOwner, type Session } from '../sessions/index.ts';
import { lockUser } from '../users/index.ts';
import { addLink, hasRoomForIdentity } from './admission-rules.ts';
import { addressIn, isStorableIdentity, linkedTo } from './identity-keys.ts';
import type { FlowOutcome, ReturnedIdentity } from './outcomes.ts';

/** Maximum identities in the list of a user. */
const MAX_LISTED = 100;

/** The public fields of an identity. `createdAt` in milliseconds since 1970. */
const listedFields = ['id', 'provider', 'email', 'createdAt'] as const;
export type ListedIdentity = Pick<Identity, (typeof listedFields)[number]>;

/** The login methods of a user. */
interface LoginMethods {
  /** Oldest first. */
  identities: ListedIdentity[];
  hasPassword: boolean;
}

interface Needs {
  database: Database;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  /** The names of the configured identity providers. */
  providers: readonly ProviderName[];
}

/** Links and unlinks further identities of a user. */
export const createIdentityLinks = ({ database, outbox, record, providers }: Needs) => {
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
      if (!(await hasRoomForIdentity(em, user))) return { result: 'failed' };
      const email = addressIn(identity);
      // The session's user is the owner of the inbox if the provider vouches for the account's address, or if all login
      // methods are proven. Otherwise an attacker may be adding a second login method.
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
          .limit(MAX_LISTED);
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

    /** Links the identity to the user of the flow's session. No error if it is already linked to that user. */
    async link(returned: ReturnedIdentity): Promise<FlowOutcome> {
      const { owner } = returned.flow;
      if (!owner) throw new ServiceError('INVALID_STATE');
      if (!isStorableIdentity(returned.identity)) return { result: 'failed' };
      const outcome = await retryOnDuplicate(() => linkOnce(returned, owner));
      outbox.wake();
      return outcome;
    },

    /**
     * Unlinks an identity of the session's user and ends all other sessions opened through its provider. NOT_FOUND;
     * LAST_LOGIN_METHOD if nobody could log in any more.
     */
    async unlink(session: Session, id: string, caller: Caller): Promise<void> {
      const { id: sessionId, user: owner } = session;
      const userId = owner.id;
      await database.transaction(async (em, tables) => {
        const user = await lockOwner(em, tables, session);
        const identities = await identitiesOf(em, user);
        const unlinked = identities.find((identity) => identity.id === id);
        if (!unlinked) throw new ServiceError('NOT_FOUND', { message: 'Linked login not found' });
        // Before its sessions end: a concurrent login by this identity holds its row, and has its session afterwards.
        await em.remove(unlinked).flush();
        if (!(await canLogIn(em, user, providers))) throw new ServiceError('LAST_LOGIN_METHOD');
        keepProviderOf(
          user,
          identities.filter((identity) => identity !== unlinked),
        );
        const { provider } = unlinked;
        await deleteSessionsThrough(tables, user, { method: provider, but: sessionId });
        await record(tables, user, { kind: 'identity-unlinked', details: { provider } }, caller);
      }, userId);
      outbox.wake();
    },
  };
};

export type IdentityLinks = ReturnType<typeof createIdentityLinks>;
